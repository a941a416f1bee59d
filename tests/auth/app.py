"""An app that signs its user in, step by step."""

import re
from dataclasses import dataclass, field
from typing import Any

import httpx

from pytest_device import auth

NONCE = "n-0S6_WzA2Mj"


def submit(http: httpx.Client, url: str, **form: str) -> httpx.Response:
    """Fill the form of the provider's page as a browser does."""
    page = http.get(url)
    assert page.status_code == 200
    (action,) = re.findall(r'action="([^"]+)"', page.text)
    return http.post(httpx.URL(url).join(action.replace("&amp;", "&")), data=form)


@dataclass
class App:
    discovery: auth.DiscoveryDocument
    http: httpx.Client
    config: dict[str, Any] = field(
        default_factory=lambda: {
            "client_id": "app",
            "redirect_uri": "myapp://redirect",
            "scopes": ["openid", "profile"],
            "extra_params": {"nonce": NONCE},
        }
    )

    def request(self, **changes: object) -> auth.AuthRequest:
        return auth.AuthRequest({**self.config, **changes})

    def open(self, url: str) -> str:
        """Act as a browser without a user: return where the page redirects."""
        return self.http.get(url).headers["location"]

    def authorize(self, request: auth.AuthRequest) -> auth.AuthSessionResult:
        return request.prompt(self.discovery, browser=self.open)

    def authorize_on_page(self, request: auth.AuthRequest) -> auth.AuthSessionResult:
        url = request.make_auth_url(self.discovery)
        answer = submit(
            self.http, url, user="ada", password="analytical", decision="allow"
        )
        return request.parse_return_url(answer.headers["location"])

    def exchange(
        self, request: auth.AuthRequest, result: auth.AuthSessionResult, **changes: Any
    ) -> auth.TokenResponse:
        config = {
            "client_id": "app",
            "redirect_uri": "myapp://redirect",
            "code": result.params["code"],
            "scopes": ["openid"],
            "extra_params": {"code_verifier": request.code_verifier},
        }
        nonce = changes.pop("nonce", NONCE)
        return auth.exchange_code(
            {**config, **changes}, self.discovery, client=self.http, nonce=nonce
        )

    def sign_in(self, **changes: object) -> auth.TokenResponse:
        request = self.request(**changes)
        return self.exchange(request, self.authorize(request))

    def refresh(self, tokens: auth.TokenResponse) -> auth.TokenResponse:
        return tokens.refresh({"client_id": "app"}, self.discovery, client=self.http)
