"""The reference cases of the sign-in library: the same requests, results and error codes."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from pytest_device import auth
from pytest_device.auth.config import read
from pytest_device.errors import AuthConfigError, ResponseError

pytestmark = pytest.mark.every_python

CASES: Final[list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("data").joinpath("auth_session.json").read_text("utf-8")
)
DEVIATIONS: Final = {"exchange_status_500_without_error_key"}
"""The document says otherwise: each has a test of its own."""
ENVIRONMENTS: Final[Mapping[str, Any]] = {"storeClient": "store_client"}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"])
        for case in CASES
        if case["name"] not in DEVIATIONS
    ],
)
def test_a_reference_case_has_the_same_outcome(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    perform = OPERATIONS[case["op"]]
    now_ms = case["input"].get("now_ms")
    if now_ms is not None:
        monkeypatch.setattr("time.time", lambda: now_ms / 1000)
    if "output" in case:
        assert perform(case["input"]) == without_now(case["output"])
        return
    with pytest.raises(
        ResponseError if case["error"]["code"] else AuthConfigError
    ) as raised:
        perform(case["input"])
    if isinstance(raised.value, ResponseError):
        assert facts_of(raised.value, FACTS) == {
            name: case["error"][name] for name in FACTS
        }


def make_auth_url(given: dict[str, Any]) -> dict[str, Any]:
    request = auth.AuthRequest(given["config"], random_bytes=counted_bytes)
    url = request.make_auth_url(given["discovery"])
    return {
        "url": url,
        "params": dict(httpx.URL(url).params.multi_items()),
        "state": request.state,
        "code_verifier": request.code_verifier,
        "code_challenge": request.code_challenge,
        "request_config": in_documents_names(request.get_auth_request_config()),
    }


def counted_bytes(length: int) -> bytes:
    return bytes((index * 7 + 3) & 255 for index in range(length))


def parse_return_url(given: dict[str, Any]) -> dict[str, Any]:
    request = auth.AuthRequest(
        {"clientId": "c", "redirectUri": "myapp://redirect", "state": given["state"]}
    )
    result = request.parse_return_url(given["url"])
    found = {
        name: getattr(result, name)
        for name in ("type", "url", "params", "authentication")
    }
    found["error"] = result.error and {
        "class": type(result.error).__name__,
        **facts_of(result.error, FACTS),
    }
    return {**found, "errorCode": result.error_code}


FACTS: Final = ("code", "message", "description", "uri", "params", "state")


def facts_of(error: ResponseError, names: Iterable[str]) -> dict[str, Any]:
    facts = {name: getattr(error, name, None) for name in names}
    if "message" in facts:  # the code is named where the reference does not
        unknown = f"unknown error {error.code!r}"
        facts["message"] = (
            "An unknown error occurred" if str(error) == unknown else str(error)
        )
    return facts


def token_error(given: dict[str, Any]) -> dict[str, Any]:
    return facts_of(
        auth.TokenError(given["response"]), [name for name in FACTS if name != "state"]
    )


def request_of(
    kind: Callable[[Any], Any],
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def facts(given: dict[str, Any]) -> dict[str, Any]:
        request = kind(given["config"])
        return {
            "headers": request.get_headers(),
            "body": request.get_query_body(),
            "config": in_documents_names(request.get_request_config()),
        }

    return facts


def exchange_of(
    kind: Callable[[Any], Any],
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def facts(given: dict[str, Any]) -> dict[str, Any]:
        sent: list[httpx.Request] = []

        def reply(request: httpx.Request) -> httpx.Response:
            sent.append(request)
            return httpx.Response(
                given["response"]["status"], json=given["response"]["body"]
            )

        with httpx.Client(transport=httpx.MockTransport(reply)) as client:
            result = kind(given["config"]).perform(given["discovery"], client=client)
        (request,) = sent
        wanted = (
            ("Content-Type", "Accept") if is_dataclass(result) else ("Content-Type",)
        )
        return {
            "request": {
                "url": str(request.url),
                "method": request.method,
                "headers": {name: request.headers[name] for name in wanted},
                "body": request.content.decode(),
            },
            "result": without_now(in_documents_names(result))
            if is_dataclass(result)
            else result,
        }

    return facts


def from_query_params(given: dict[str, Any]) -> dict[str, Any]:
    token = auth.TokenResponse.from_query_params(given["params"])
    return tokens_of(token, given)


def tokens_of(token: auth.TokenResponse, given: dict[str, Any]) -> dict[str, Any]:
    """Return the tokens with the case's time, which is that of the clock."""
    found = in_documents_names(token)
    found.pop("rawResponse")
    return {**found, "issuedAt": given["now_seconds"]}


def fetched(
    reply: Mapping[str, Any], call: Callable[[httpx.Client], Any]
) -> tuple[list[dict[str, Any]], Any]:
    """Return the requests that a call sends, and its result."""
    sent: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(reply.get("status", 200), json=reply["body"])

    with httpx.Client(transport=httpx.MockTransport(respond)) as client:
        result = call(client)
    requests = [
        {
            "url": str(request.url),
            "method": request.method,
            "headers": {
                name: request.headers[name]
                for name in ("Content-Type", "Accept")
                if name in request.headers
            },
            "body": request.content.decode() or None,
        }
        for request in sent
    ]
    return requests, result


def token_refresh(given: dict[str, Any]) -> dict[str, Any]:
    token = read(auth.TokenResponse, given["token"])
    discovery = {"tokenEndpoint": "https://idp.example/token"}
    requests, new = fetched(
        given["response"],
        lambda client: token.refresh(given["config"], discovery, client=client),
    )
    return {"request": requests[0], "n": len(requests), "result": tokens_of(new, given)}


def fetch_discovery(given: dict[str, Any]) -> dict[str, Any]:
    requests, document = fetched(
        given["response"],
        lambda client: auth.fetch_discovery(given["issuer"], client=client),
    )
    return {
        "request": requests[0],
        "n": len(requests),
        "result": in_documents_names(document),
    }


def resolve_discovery(given: dict[str, Any]) -> dict[str, Any]:
    found = in_documents_names(auth.resolve_discovery(given["discovery"]))
    return {name: value for name, value in found.items() if value}


def user_info(given: dict[str, Any]) -> dict[str, Any]:
    return auth.fetch_user_info(given["config"], given["discovery"])


def prompt(given: dict[str, Any]) -> dict[str, Any]:
    calls: list[dict[str, Any]] = []
    config = {
        "clientId": "client-1",
        "redirectUri": "myapp://redirect",
        "state": "s",
        "usePKCE": False,
    }
    discovery = {"authorizationEndpoint": "https://idp.example/authorize"}

    def browser(url: str, return_url: str) -> Mapping[str, Any] | None:
        if given.get("concurrent") == 2:
            second = auth.AuthRequest(config).prompt(
                discovery, browser=lambda _url: None
            )
            calls.append({"type": second.type})
            return None
        calls.append({"url": url, "returnUrl": return_url, "options": {}})
        result: dict[str, Any] = given["browser_result"]
        return result

    result = auth.AuthRequest(config).prompt(discovery, browser=browser)
    if given.get("concurrent") == 2:
        return {"second": calls[0], "first": {"type": result.type}}
    return {
        "browser_call": calls[0],
        "result": {"type": result.type, "error": result.error},
    }


def make_redirect_uri(given: dict[str, Any]) -> str:
    constants = given["constants"]
    config = constants.get("vendorConfig", {})
    name = constants["executionEnvironment"]
    return auth.make_redirect_uri(
        given["options"],
        environment=ENVIRONMENTS.get(name, name),
        platform=given["platform"],
        config={name: value for name, value in config.items() if name != "hostUri"},
        host_uri=config.get("hostUri"),
    )


OPERATIONS: Final[Mapping[str, Callable[[dict[str, Any]], Any]]] = {
    "make_auth_url": make_auth_url,
    "parse_return_url": parse_return_url,
    "access": request_of(auth.AccessTokenRequest),
    "refresh": request_of(auth.RefreshTokenRequest),
    "revoke": request_of(auth.RevokeTokenRequest),
    "access_perform": exchange_of(auth.AccessTokenRequest),
    "refresh_perform": exchange_of(auth.RefreshTokenRequest),
    "revoke_perform": exchange_of(auth.RevokeTokenRequest),
    "is_token_fresh": lambda given: {
        "fresh": auth.TokenResponse.is_token_fresh(
            given["token"],
            *([] if given["seconds_margin"] is None else [given["seconds_margin"]]),
            now=given["now_seconds"],
        )
    },
    "should_refresh": lambda given: {
        "should_refresh": read(auth.TokenResponse, given["token"]).should_refresh(
            now=given["now_seconds"]
        )
    },
    "token_error": token_error,
    "issuer_with_well_known_url": lambda given: auth.issuer_with_well_known_url(
        given["issuer"]
    ),
    "derive_challenge": lambda given: auth.derive_challenge(given["code_verifier"]),
    "userinfo_perform": user_info,
    "from_query_params": from_query_params,
    "token_refresh": token_refresh,
    "fetch_discovery": fetch_discovery,
    "resolve_discovery": resolve_discovery,
    "current_time": lambda _given: auth.get_current_time_in_seconds(),
    "prompt": prompt,
    "make_redirect_uri": make_redirect_uri,
}


def in_documents_names(value: Any) -> dict[str, Any]:
    def name_of(name: str) -> str:
        first, *more = name.split("_")
        return (
            "usePKCE" if name == "use_pkce" else first + "".join(map(str.title, more))
        )

    return {name_of(name): part for name, part in asdict(value).items()}


def without_now(value: Any) -> Any:
    """Drop times taken from the clock: those of a reply without ``issued_at``."""
    if isinstance(value, dict):
        is_now = value.get("issuedAt") == "<now>" or (
            "issued_at" not in (value.get("rawResponse") or {"issued_at": 0})
        )
        return {
            name: without_now(part)
            for name, part in value.items()
            if not (name == "issuedAt" and is_now)
        }
    return value
