"""Update service for tests: what it serves, the failures to inject and the requests it saw."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ConfigError, hides_frames
from pytest_device.serving import (
    Failure,
    Journal,
    Service,
    app_of,
    check_public_url,
    need_extra,
    wait_for_disconnect,
)
from pytest_device.spec import VENDOR
from pytest_device.spelling import unknown
from pytest_device.updates.export import ExportedFile
from pytest_device.updates.protocol import (
    Answer,
    Reply,
    ServedAsset,
    ServedRollBack,
    ServedUpdate,
)
from pytest_device.updates.published_protocol_v1 import PublishedProtocolV1
from pytest_device.updates.service.releases import Release, Releases
from pytest_device.updates.signing import CodeSigning, sign, validate_certificate
from pytest_device.updates.values import Update, UpdateError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__tracebackhide__ = hides_frames

Endpoint: TypeAlias = Literal["manifest", "asset"]
FailureKind: TypeAlias = Literal[
    "slow",
    "server_error",
    "half_body",
    "corrupt_asset",
    "wrong_hash",
    "wrong_signature",
    "missing_signature",
]
_ENDPOINTS_OF: Final[Mapping[FailureKind, tuple[Endpoint, ...]]] = {
    "slow": ("manifest", "asset"),
    "server_error": ("manifest", "asset"),
    "half_body": ("manifest", "asset"),
    "corrupt_asset": ("asset",),
    "wrong_hash": ("manifest",),
    "wrong_signature": ("manifest",),
    "missing_signature": ("manifest",),
}
"""Endpoints at which a failure can happen; the first one is the default."""


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request that the service answered; ``answer`` is an update ID, an asset key, ``roll-back`` or ``nothing``."""

    kind: Endpoint
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
    error: str = ""
    """Why the request was refused; empty if it was not."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


MANIFEST: Final = "/manifest"
_UNCACHED: Final = {"cache-control": "no-store"}


class DeviceUpdateService(Service[Journal]):
    """An update service on this machine; use it as a context manager, or serve its ``app`` elsewhere.

    Args:
        signing: The key and certificate that sign the replies.
        vendor: The vendor's profile, or only its word.
        public_url: The address at which remote devices reach the service, for example through a tunnel.
        device_header: The request header that identifies devices (default: the profile's ``client_id_header``; if a
            request lacks it, its user agent and address).
        port: The port of this machine (default: a free one).
        clock: Returns the current time, for the times of releases and requests.

    Raises:
        ConfigError: An argument is invalid, or the extra is not installed.
        CertificateError: The certificate must not sign code, or does not match the key.
    """

    def __init__(
        self,
        *,
        signing: CodeSigning | None = None,
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
        self._protocol = PublishedProtocolV1(profile)
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
        return tuple(dict.fromkeys(request.device for request in self.requests))

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
        on: Endpoint | None = None,
        times: int = 1,
        seconds: float = 1.0,
    ) -> None:
        """Make the next requests for the manifest or an asset fail; ``seconds`` is the delay of ``slow``."""
        endpoints = _ENDPOINTS_OF.get(kind)
        if endpoints is None:
            raise ConfigError(
                unknown("failure of the update service", kind, _ENDPOINTS_OF)
            )

        endpoint = on or endpoints[0]
        if endpoint not in endpoints:
            raise ConfigError(
                f"{kind!r} does not apply to {endpoint!r}: use on={endpoints[0]!r}"
            )

        self._journal.add_failure(Failure(endpoint, kind, times, seconds))

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

        def has_answer(request: SeenRequest) -> bool:
            return device in ("", request.device) and answer in ("", request.answer)

        awaited = f"request with the answer {answer!r}" if answer else "request"

        return self._wait(has_answer, awaited, timeout_seconds, after)

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

        def reports_crash(request: SeenRequest) -> bool:
            if device not in ("", request.device):
                return False
            if not update_id:
                return bool(request.fatal_error or request.failed_update_ids)

            # Platforms write UUIDs in different cases.
            failed_ids = [failed_id.lower() for failed_id in request.failed_update_ids]

            return update_id.lower() in failed_ids

        awaited = "crash report"
        if update_id:
            awaited = f"report that update {update_id} failed"

        return self._wait(reports_crash, awaited, timeout_seconds, after)

    def _wait(
        self,
        matches: Callable[[SeenRequest], bool],
        awaited: str,
        timeout_seconds: float,
        after: int,
    ) -> SeenRequest:
        def first_match() -> SeenRequest | None:
            for request in self.requests[after:]:
                if matches(request):
                    return request

            return None

        request = self._journal.wait_until(first_match, timeout_seconds)
        if request is not None:
            return request

        last = [_described(seen) for seen in self.requests[-5:]]
        raise TimeoutError(
            f"no {awaited} within {timeout_seconds:g} s; "
            f"the service last saw: {', '.join(last) or 'nothing'}"
        )

    @property
    def _base(self) -> str:
        return (self._public_url or self.local_url).rstrip("/")

    def _app(self) -> "Starlette":
        from starlette.routing import Route

        routes = [
            Route(MANIFEST, self._manifest),
            Route("/assets/{hash}", self._asset),
        ]
        for route in routes:
            # Without HEAD, which no app sends: a health check must neither be recorded nor take a failure.
            route.methods = {"GET"}

        return app_of(routes)

    async def _manifest(self, request: "Request") -> "Response":
        headers = dict(request.headers)
        failures = self._failures("manifest")
        seen = replace(self._seen("manifest", request, failures), headers=headers)
        try:
            update_request = self._protocol.read_request(headers)
        except UpdateError as error:
            reply = Reply(400, _UNCACHED, f"{error}\n".encode())
            seen = replace(seen, error=str(error))
            return await self._answered(seen, reply, failures, request)

        release = self._releases.release_for(update_request, seen.device)
        reply = self._protocol.write_reply(
            self._answer(release, failures),
            update_request,
            lambda body: self._sign(body, failures),
        )
        seen = replace(
            seen,
            answer=_name_of(release),
            platform=update_request.platform,
            runtime_version=update_request.runtime_version,
            channel=update_request.channel or "",
            current_update_id=update_request.current_update_id,
            fatal_error=update_request.fatal_error,
            failed_update_ids=update_request.failed_update_ids,
        )

        return await self._answered(seen, reply, failures, request)

    async def _asset(self, request: "Request") -> "Response":
        failures = self._failures("asset")
        seen = self._seen("asset", request, failures)
        published = self._releases.files.get(request.path_params["hash"])
        if published is None:
            reply = Reply(404, _UNCACHED, b"no such asset\n")
            return await self._answered(seen, reply, failures, request)

        file, content = published
        if "corrupt_asset" in failures:
            content = _corrupted(content)
        # The URL has the hash of the content, which therefore never changes.
        headers = {
            "content-type": file.content_type,
            "cache-control": "public, max-age=31536000, immutable",
        }
        seen = replace(seen, answer=file.key)

        reply = Reply(200, headers, content)

        return await self._answered(seen, reply, failures, request)

    def _failures(self, endpoint: Endpoint) -> dict[FailureKind, float]:
        """Return the failures for the current request, each with its delay in seconds, and count them down."""
        delays: dict[FailureKind, float] = {}

        for kind in _ENDPOINTS_OF:
            failure = self._journal.take_failure(endpoint, kind)
            if failure:
                delays[kind] = failure.seconds

        return delays

    def _seen(
        self,
        kind: Endpoint,
        request: "Request",
        failures: Mapping[FailureKind, float],
    ) -> SeenRequest:
        """Return the record of a request that has no answer yet."""
        return SeenRequest(
            kind,
            self._device(request),
            self._clock(),
            answer="",
            status=0,
            failure=", ".join(failures),
        )

    async def _answered(
        self,
        seen: SeenRequest,
        reply: Reply,
        failures: Mapping[FailureKind, float],
        request: "Request",
    ) -> "Response":
        """Record a request, and return its reply with the failures that apply to any reply."""
        from starlette.responses import Response

        if "slow" in failures:
            await wait_for_disconnect(request.receive, failures["slow"])
        if "server_error" in failures:
            reply = Reply(500, _UNCACHED, b"failure requested by the test\n")
        if "half_body" in failures:
            reply = replace(reply, body=reply.body[: len(reply.body) // 2])

        # Recorded last, when the failures have decided what is sent.
        self._journal.add(replace(seen, status=reply.status))
        headers = dict(reply.headers)
        if failures:
            # A cache would repeat the failure.
            headers.update(_UNCACHED)

        return Response(reply.body, reply.status, headers)

    def _answer(
        self, release: Release | None, failures: Mapping[FailureKind, float]
    ) -> Answer:
        if release is None:
            return None
        if release.update is None or release.export is None:
            return ServedRollBack(release.at)

        bundle, *assets = (
            self._served(file, failures) for file in release.export.files
        )

        return ServedUpdate(
            release.update.id,
            release.at,
            release.runtime_version,
            bundle,
            tuple(assets),
        )

    def _served(
        self, file: ExportedFile, failures: Mapping[FailureKind, float]
    ) -> ServedAsset:
        file_hash = file.hash or ""
        # Reversed, it is a hash of the same form that no file has.
        stated_hash = file_hash[::-1] if "wrong_hash" in failures else file_hash

        return ServedAsset(
            file.key,
            stated_hash,
            file.content_type,
            file.extension,
            f"{self._base}/assets/{file_hash}",
        )

    def _sign(self, body: bytes, failures: Mapping[FailureKind, float]) -> str | None:
        if self._signing is None or "missing_signature" in failures:
            return None

        signed_body = body
        # A signature of the right form and key, of another body.
        if "wrong_signature" in failures:
            signed_body += b" "

        return sign(signed_body, self._signing.private_key)

    def _device(self, request: "Request") -> str:
        installation_id = request.headers.get(self._device_header)
        if installation_id:
            return installation_id

        user_agent = request.headers.get("user-agent", "")
        host = request.client.host if request.client else ""

        return f"{user_agent} at {host}".strip()


def _described(seen: SeenRequest) -> str:
    """Return a request in words; an app that asks for something else than a test published gets nothing."""
    text = f"{seen.kind} {seen.answer}".strip() + f" {seen.status}"
    if seen.error:
        return f"{text} ({seen.error})"
    if not seen.platform:
        return text

    channel = f", channel {seen.channel}" if seen.channel else ""
    return f"{text} ({seen.platform}, runtime version {seen.runtime_version}{channel})"


def _corrupted(content: bytes) -> bytes:
    """Return content of the same size with another last bit: only its hash reveals the change."""
    if not content:
        return b"?"

    return content[:-1] + bytes([content[-1] ^ 1])


def _name_of(release: Release | None) -> str:
    if release is None:
        return "nothing"

    return release.update.id if release.update else "roll-back"
