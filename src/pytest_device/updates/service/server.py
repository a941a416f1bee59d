"""Update service for tests: what it serves, the failures to inject and the requests it saw."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pytest_device import serving
from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ConfigError, hides_frames
from pytest_device.serving import Service, app_of, check_public_url, need_extra
from pytest_device.spec import VENDOR
from pytest_device.spelling import unknown
from pytest_device.updates.protocol import (
    Answer,
    Reply,
    ServedAsset,
    ServedRollBack,
    ServedUpdate,
    UpdateProtocol,
)
from pytest_device.updates.published_protocol_v1 import published_protocol_v1
from pytest_device.updates.service.releases import Release, Releases
from pytest_device.updates.signing import CodeSigning, sign, validate_certificate
from pytest_device.updates.values import Update, UpdateError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__tracebackhide__ = hides_frames

Door: TypeAlias = Literal["manifest", "asset"]
FailureKind: TypeAlias = Literal[
    "slow",
    "server_error",
    "half_body",
    "corrupt_asset",
    "wrong_hash",
    "wrong_signature",
    "missing_signature",
]
_DOORS: Final[Mapping[FailureKind, tuple[Door, ...]]] = {
    "slow": ("manifest", "asset"),
    "server_error": ("manifest", "asset"),
    "half_body": ("manifest", "asset"),
    "corrupt_asset": ("asset",),
    "wrong_hash": ("manifest",),
    "wrong_signature": ("manifest",),
    "missing_signature": ("manifest",),
}

POLLS: Final = 10
POLLING_SECONDS: Final = 10.0
"""Time in which `POLLS` checks by one device count as polling, in seconds; hosted services don't state a limit."""


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request that the service answered; ``answer`` is an update ID, an asset key, ``roll-back`` or ``nothing``."""

    kind: Door
    device: str
    at: datetime
    answer: str
    status: int
    platform: str = ""
    runtime_version: str = ""
    channel: str = ""
    current_update_id: str | None = None
    fatal_error: str = ""
    """The error that ended the app's last launch, as the app reports it; empty if none did."""
    failed_update_ids: tuple[str, ...] = ()
    """The updates that recently failed to launch on the device, as the app reports them."""
    failure: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class Journal(serving.Journal):
    """Received requests and pending failures."""

    def fail(
        self, kind: FailureKind, door: Door | None, times: int, seconds: float
    ) -> None:
        """Make upcoming requests fail. Raises ConfigError for a failure that the endpoint doesn't support."""
        doors = _DOORS.get(kind)
        if doors is None:
            raise ConfigError(unknown("failure of the update service", kind, _DOORS))
        if door is not None and door not in doors:
            raise ConfigError(
                f"{kind!r} does not apply to {door!r}: use on={doors[0]!r}"
            )
        self.add_failure(serving.Failure(door or doors[0], kind, times, seconds))

    def take_failures(self, door: Door) -> dict[FailureKind, float]:
        """Return the failures for the current request, each with its delay in seconds, and count them down."""
        return {
            kind: failure.seconds
            for kind in _DOORS
            if (failure := self.take_failure(door, kind))
        }

    def devices(self) -> tuple[str, ...]:
        """Return the devices whose app sent a request, in the order of their first one."""
        return tuple(dict.fromkeys(one.device for one in self.of(SeenRequest)))

    def polling(self) -> tuple[str, ...]:
        """Return the devices whose app polls for updates in a tight loop."""
        checks: dict[str, list[datetime]] = {}
        for one in self.of(SeenRequest):
            if one.kind == "manifest":
                checks.setdefault(one.device, []).append(one.at)
        return tuple(name for name, times in checks.items() if _is_tight(times))


def _is_tight(times: list[datetime]) -> bool:
    pairs = zip(times, times[POLLS - 1 :], strict=False)
    return any(
        (last - first).total_seconds() < POLLING_SECONDS for first, last in pairs
    )


MANIFEST: Final = "/manifest"
_FRESH: Final = {"cache-control": "no-store"}


class DeviceUpdateService(Service[Journal]):
    """An update service on this machine; use it as a context manager, or serve its ``app`` elsewhere.

    ``signing`` signs the replies. ``public_url`` is the address at which remote devices reach the service, for example
    through a tunnel. ``vendor`` is the vendor's profile, or only its word. ``device_header`` is the request header that
    identifies devices (default: the profile's ``client_id_header``; if a request lacks it, its user agent and address).
    """

    def __init__(
        self,
        *,
        signing: CodeSigning | None = None,
        protocol: UpdateProtocol | None = None,
        vendor: VendorProfile | str = VENDOR,
        public_url: str | None = None,
        device_header: str = "",
        port: int = 0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        need_extra("DeviceUpdateService", "starlette", "uvicorn", "http_sf")
        check_public_url(public_url)
        if signing:
            validate_certificate(signing.certificate, signing.private_key)
        super().__init__(Journal(), port)
        self._signing = signing
        profile = profile_of(vendor)
        self._protocol = protocol or published_protocol_v1(profile)
        self._device_header = device_header or profile.client_id_header
        self._clock = clock
        self._releases = Releases()
        self._public_url = public_url

    @property
    def url(self) -> str:
        """URL to set as ``updates.url``."""
        return f"{self._base}{MANIFEST}"

    @property
    def requests(self) -> tuple[SeenRequest, ...]:
        """Requests received so far, with their answers."""
        return self._journal.of(SeenRequest)

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices whose app sent a request, each once, by the ID of its installation."""
        return self._journal.devices()

    @property
    def polling_devices(self) -> tuple[str, ...]:
        """Devices whose app polls for updates in a tight loop, which hosted services may rate-limit."""
        return self._journal.polling()

    def publish(
        self,
        directory: str | Path,
        runtime_version: str,
        channel: str = "",
        *,
        share: float = 1.0,
    ) -> Mapping[str, Update]:
        """Publish an exported update to a share of the devices, and return the updates by platform.

        Later changes in the directory have no effect. Raises ConfigError, also if the directory isn't an export.
        """
        return self._releases.publish(
            Path(directory), channel, runtime_version, share, self._clock()
        )

    def roll_back_to_embedded(
        self, runtime_version: str, channel: str = ""
    ) -> datetime:
        """Roll apps back to their embedded update; return the time up to which updates are not launched."""
        return self._releases.roll_back(channel, runtime_version, self._clock())

    def roll_out(self, update_id: str, share: float) -> None:
        """Change the share of devices that get an update, from 0 to 1."""
        self._releases.roll_out(update_id, share)

    def fail(
        self,
        kind: FailureKind,
        *,
        on: Door | None = None,
        times: int = 1,
        seconds: float = 1.0,
    ) -> None:
        """Make the next requests for the manifest or an asset fail; ``seconds`` is the delay of ``slow``."""
        self._journal.fail(kind, on, times, seconds)

    def wait_for_request(
        self,
        answer: str = "",
        *,
        device: str = "",
        timeout_seconds: float = 10.0,
        after: int = 0,
    ) -> SeenRequest:
        """Wait for a request with an answer: an update ID, an asset key, ``roll-back`` or ``nothing``.

        ``after`` skips that many requests; ``device`` filters by device. Raises TimeoutError listing the last requests.
        """
        return self._wait(
            lambda one: device in ("", one.device) and answer in ("", one.answer),
            f"request with the answer {answer!r}" if answer else "request",
            timeout_seconds,
            after,
        )

    def wait_for_crash(
        self,
        update_id: str = "",
        *,
        device: str = "",
        timeout_seconds: float = 10.0,
        after: int = 0,
    ) -> SeenRequest:
        """Wait for a request whose app reports that it crashed at launch, or that an update failed to launch.

        ``update_id`` waits for the report that this update failed. ``after`` and ``device`` are those of
        `wait_for_request`. Raises TimeoutError listing the last requests.
        """

        def reports_crash(one: SeenRequest) -> bool:
            if device not in ("", one.device):
                return False
            if update_id:
                return update_id.lower() in map(str.lower, one.failed_update_ids)
            return bool(one.fatal_error or one.failed_update_ids)

        what = f"report that update {update_id} failed" if update_id else "crash report"
        return self._wait(reports_crash, what, timeout_seconds, after)

    def _wait(
        self,
        is_wanted: Callable[[SeenRequest], bool],
        what: str,
        timeout_seconds: float,
        after: int,
    ) -> SeenRequest:
        request = self._journal.wait_until(
            lambda: next(filter(is_wanted, self.requests[after:]), None),
            timeout_seconds,
        )
        if request is None:
            last = (
                ", ".join(
                    f"{one.kind} {one.answer} {one.status}"
                    for one in self.requests[-5:]
                )
                or "nothing"
            )
            raise TimeoutError(
                f"no {what} within {timeout_seconds:g} s; the service last saw: {last}"
            )
        return request

    @property
    def _base(self) -> str:
        return (self._public_url or self.local_url).rstrip("/")

    def _app(self) -> "Starlette":
        from starlette.routing import Route

        return app_of(
            [Route(MANIFEST, self._manifest), Route("/assets/{hash}", self._asset)]
        )

    async def _manifest(self, request: "Request") -> "Response":
        headers, device = dict(request.headers), self._device(request)
        failures = self._journal.take_failures("manifest")
        seen = SeenRequest(
            "manifest",
            device,
            self._clock(),
            "",
            0,
            failure=", ".join(failures),
            headers=headers,
        )
        try:
            asked = self._protocol.read_request(headers)
        except UpdateError as error:
            return await self._answered(
                seen, Reply(400, _FRESH, f"{error}\n".encode()), failures
            )
        release = self._releases.release_for(asked, device)
        reply = self._protocol.write_reply(
            self._answer(release, failures),
            asked,
            lambda body: self._sign(body, failures),
        )
        seen = replace(
            seen,
            answer=_name_of(release),
            platform=asked.platform,
            runtime_version=asked.runtime_version,
            channel=asked.channel or "",
            current_update_id=asked.current_update_id,
            fatal_error=asked.fatal_error,
            failed_update_ids=asked.failed_update_ids,
        )
        return await self._answered(seen, reply, failures)

    async def _asset(self, request: "Request") -> "Response":
        failures = self._journal.take_failures("asset")
        seen = SeenRequest(
            "asset",
            self._device(request),
            self._clock(),
            "",
            0,
            failure=", ".join(failures),
        )
        known = self._releases.files.get(request.path_params["hash"])
        if known is None:
            return await self._answered(
                seen, Reply(404, _FRESH, b"no such asset\n"), failures
            )
        file, content = known
        if "corrupt_asset" in failures:
            content = content[:-1] + bytes([content[-1] ^ 1]) if content else b"?"
        headers = {
            "content-type": file.content_type,
            "cache-control": "public, max-age=31536000, immutable",
        }
        return await self._answered(
            replace(seen, answer=file.key), Reply(200, headers, content), failures
        )

    async def _answered(
        self, seen: SeenRequest, reply: Reply, failures: Mapping[FailureKind, float]
    ) -> "Response":
        from starlette.responses import Response

        if "slow" in failures:
            await asyncio.sleep(failures["slow"])
        if "server_error" in failures:
            reply = Reply(500, _FRESH, b"failure requested by the test\n")
        if "half_body" in failures:
            reply = replace(reply, body=reply.body[: len(reply.body) // 2])
        self._journal.add(replace(seen, status=reply.status))
        # A cache would repeat the failure.
        headers = {
            **reply.headers,
            **(_FRESH if failures else {}),
        }
        return Response(reply.body, reply.status, headers)

    def _answer(
        self, release: Release | None, failures: Mapping[FailureKind, float]
    ) -> Answer:
        if release is None:
            return None
        if release.update is None or release.export is None:
            return ServedRollBack(release.at)
        wrong = "wrong_hash" in failures
        bundle, *assets = (
            ServedAsset(
                one.key,
                (one.hash or "")[::-1] if wrong else one.hash or "",
                one.content_type,
                one.extension,
                f"{self._base}/assets/{one.hash}",
            )
            for one in release.export.files
        )
        return ServedUpdate(
            release.update.id,
            release.at,
            release.runtime_version,
            bundle,
            tuple(assets),
        )

    def _sign(self, body: bytes, failures: Mapping[FailureKind, float]) -> str | None:
        if self._signing is None or "missing_signature" in failures:
            return None
        return sign(
            body + b" " if "wrong_signature" in failures else body,
            self._signing.private_key,
        )

    def _device(self, request: "Request") -> str:
        named = request.headers.get(self._device_header)
        host = request.client.host if request.client else ""
        return named or f"{request.headers.get('user-agent', '')} at {host}".strip()


def _name_of(release: Release | None) -> str:
    if release is None:
        return "nothing"
    return release.update.id if release.update else "roll-back"
