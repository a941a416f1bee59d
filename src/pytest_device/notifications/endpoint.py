"""A local token endpoint of the push service that records requests and simulates failures."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.body_limit import BodyLimitError, read_body_async
from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.tokens import PushToken
from pytest_device.secret_registry import SECRETS
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

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__tracebackhide__ = hides_frames

MAX_REQUEST_BYTES: Final = 64 * 1024
"""Far larger than a request, whose longest field is a device token."""
FIELD_TYPES: Final[Mapping[str, type]] = {
    "type": str,
    "deviceId": str,
    "development": bool,
    "appId": str,
    "deviceToken": str,
    "projectId": str,
}
"""Fields of a token request ("Token options")."""

_ENDPOINT: Final = "token"
"""Name of the only endpoint in the journal."""

FailureKind: TypeAlias = Literal["server_error", "hang", "not_json", "no_token"]


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """Recorded token request: JSON body and HTTP status of the response, None without one (the failure ``hang``)."""

    body: Mapping[str, Any] = field(repr=False)
    status: int | None


class PushEndpoint(Service[Journal]):
    """Token endpoint, used as a context manager; an app on a device keeps its token until ``roll``.

    Args:
        port: The port of this machine (default: a free one).
        public_url: The address at which devices on other machines reach the endpoint, for example through a tunnel.
        vendor: The vendor's profile, or only its word: its apps request ``push_path`` and read ``push_reply_key``.

    Raises:
        ConfigError: ``public_url`` is no http or https URL, or the extra is not installed.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        public_url: str | None = None,
        vendor: VendorProfile | str = VENDOR,
    ) -> None:
        need_extra("PushEndpoint", "starlette", "uvicorn")
        check_public_url(public_url)
        super().__init__(Journal(), port)
        self._public_url = public_url
        self._profile = profile_of(vendor)
        self._tokens: dict[tuple[Any, ...], PushToken] = {}

    @property
    def base_url(self) -> str:
        """Base URL for token requests. Raises ConfigError if the port is in use."""
        return f"{(self._public_url or self.local_url).rstrip('/')}/"

    @property
    def token_url(self) -> str:
        """URL to which apps send token requests."""
        return f"{self.base_url}{self._profile.push_path}"

    @property
    def requests(self) -> tuple[TokenRequest, ...]:
        """Requests received so far."""
        return self._journal.of(TokenRequest)

    @property
    def tokens(self) -> tuple[PushToken, ...]:
        """Valid push tokens."""
        with self._journal.changed:
            return tuple(self._tokens.values())

    def fail(self, kind: FailureKind, *, times: int = 1) -> None:
        """Fail the next requests: with status 500, no response, a non-JSON body, or no token."""
        if kind not in get_args(FailureKind):
            raise ConfigError(
                unknown("failure of the push endpoint", kind, get_args(FailureKind))
            )

        self._journal.add_failure(Failure(_ENDPOINT, kind, times))

    def roll(self, token: PushToken | str) -> PushToken:
        """Replace a token and invalidate the old one. Raises ConfigError for an unknown token."""
        data = token if isinstance(token, str) else token.data
        with self._journal.changed:
            for app, valid_token in self._tokens.items():
                if valid_token.data == data:
                    return self._new_token(app)

        raise ConfigError("unknown push token: pass one of the endpoint's tokens")

    def wait_for_request(
        self, timeout_seconds: float = 10.0, *, after: int = 0
    ) -> TokenRequest:
        """Return the first request after the first ``after`` ones, waiting for it. Raises TimeoutError."""

        def first_request() -> TokenRequest | None:
            requests = self.requests[after:]

            return requests[0] if requests else None

        request = self._journal.wait_until(first_request, timeout_seconds)
        if request is None:
            raise TimeoutError(
                f"no app requested a push token within {timeout_seconds:g} s at {self.token_url}"
            )

        return request

    def _new_token(self, app: tuple[Any, ...]) -> PushToken:
        profile = self._profile
        text = f"{profile.word.title()}PushToken[{uuid.uuid4().hex[:22]}]"
        token = PushToken(text, profile.token_type)
        self._tokens[app] = token

        return token

    def _app(self) -> "Starlette":
        from starlette.routing import Route

        return app_of(
            [Route(f"/{self._profile.push_path}", self._answer, methods=["POST"])]
        )

    async def _answer(self, request: "Request") -> "Response":
        from starlette.responses import Response

        # Read also before a failure, so that the request is recorded with its body.
        body = await _read(request)
        failure = self._journal.take_failure(_ENDPOINT)
        failure_kind = failure.kind if failure else None
        if failure_kind == "hang":
            # Before the wait, which never ends by itself: a test waits for the request.
            self._journal.add(TokenRequest(body, None))
            await wait_for_disconnect(request.receive)
            return Response()

        response = self._reply(body, failure_kind)
        self._journal.add(TokenRequest(body, response.status_code))

        return response

    def _reply(self, body: Mapping[str, Any], failure: str | None) -> "Response":
        from starlette.responses import JSONResponse, PlainTextResponse

        wrong_fields = [
            name
            for name, field_type in FIELD_TYPES.items()
            if not isinstance(body.get(name), field_type)
        ]
        if wrong_fields:
            return PlainTextResponse(
                f"the request must be JSON with {', '.join(wrong_fields)}", 400
            )
        if failure == "server_error":
            return PlainTextResponse("failure requested by the test", 500)
        if failure == "not_json":
            return PlainTextResponse("failure requested by the test")
        if failure == "no_token":
            return JSONResponse({"data": {}})

        # Whoever has it can send messages to the device.
        SECRETS.learn(body["deviceToken"])
        app = tuple(
            body[name] for name in ("projectId", "appId", "deviceId", "deviceToken")
        )
        with self._journal.changed:
            token = self._tokens.get(app) or self._new_token(app)

        return JSONResponse({"data": {self._profile.push_reply_key: token.data}})


async def _read(request: "Request") -> Mapping[str, Any]:
    """Return the JSON object in the body of a request, or an empty one."""
    try:
        body = await read_body_async(request.stream(), MAX_REQUEST_BYTES)
        value: object = json.loads(body)
    except (BodyLimitError, ValueError, RecursionError):
        return {}

    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
