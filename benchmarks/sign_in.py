"""How long the code flow without a browser takes, over the same HTTP exchanges by hand.

``python benchmarks/sign_in.py`` prints the figures and fails if the flow takes more than 1.3 times as long.
``python benchmarks/sign_in.py app`` runs ``examples/sign_in`` on local devices, prints how long its tests take to have
the user signed in, by the page and by tokens in a link, and fails where a link takes a second or more.
"""

import base64
import hashlib
import re
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import httpx

from pytest_device import auth
from pytest_device.auth.provider import Client, IdentityProvider

ROUNDS: Final = 300
BOUND: Final = 1.3
BOUND_SECONDS: Final = 1.0
EXAMPLE: Final = Path(__file__).parent.parent / "examples" / "sign_in"
BY_PAGE: Final = "test_sign_in_page.py::test_a_user_signs_in"
BY_LINK: Final = "test_signed_in.py::test_a_link_signs_in"
REDIRECT_URI: Final = "myapp://redirect"


def main() -> int:
    """Print the medians; return 1 if their ratio exceeds the bound."""
    clients = [Client("app", [REDIRECT_URI])]
    with (
        IdentityProvider(clients=clients, automatic_user="user") as provider,
        httpx.Client() as client,
    ):
        discovery = auth.fetch_discovery(provider.issuer, client=client)
        flows = {
            "by hand": lambda: _by_hand(provider.issuer, client),
            "library": lambda: _by_library(discovery, client),
        }
        seconds = {
            name: [_timed(flow) for _ in range(20)] for name, flow in flows.items()
        }
        for _ in range(ROUNDS):  # in turns, so that the machine's moods meet both
            for name, flow in flows.items():
                seconds[name].append(_timed(flow))
    medians = {name: statistics.median(times[20:]) for name, times in seconds.items()}
    ratio = medians["library"] / medians["by hand"]
    print(
        ", ".join(f"{name}: {median * 1000:.2f} ms" for name, median in medians.items())
    )
    print(f"library over by hand: {ratio:.3f} (bar: {BOUND})")
    return int(ratio > BOUND)


def in_app() -> int:
    """Print how long the tests of the example take; return 1 if the link's take a second."""
    tests = [str(EXAMPLE / name) for name in (BY_PAGE, BY_LINK)]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--device-local",
        "-q",
        "-vv",
        "--durations=0",
        "--color=no",
        *tests,
    ]
    done = subprocess.run(
        command, cwd=EXAMPLE.parent, capture_output=True, text=True, check=True
    )
    calls = re.findall(r"([0-9.]+)s call +\S*::(test_\w+)\[(\w+)\]", done.stdout)
    for seconds, test, platform in calls:
        print(f"{test} on {platform}: {float(seconds):.2f} s")
    slowest = max(float(seconds) for seconds, test, _ in calls if test in BY_LINK)
    print(f"signed in by a link, slowest: {slowest:.2f} s (bar: {BOUND_SECONDS:g} s)")
    return int(slowest >= BOUND_SECONDS)


def _timed(flow: Callable[[], None]) -> float:
    start = time.perf_counter()
    flow()
    return time.perf_counter() - start


def _by_library(discovery: auth.DiscoveryDocument, client: httpx.Client) -> None:
    request = auth.AuthRequest(
        {"client_id": "app", "redirect_uri": REDIRECT_URI, "scopes": ["profile"]}
    )
    result = request.prompt(
        discovery, browser=lambda url: client.get(url).headers["location"]
    )
    config = {
        "client_id": "app",
        "redirect_uri": REDIRECT_URI,
        "code": result.params["code"],
    }
    verifier = {"code_verifier": request.code_verifier}
    assert auth.exchange_code(
        {**config, "extra_params": verifier}, discovery, client=client
    ).access_token


def _by_hand(issuer: str, client: httpx.Client) -> None:
    verifier, state = secrets.token_urlsafe(64), secrets.token_urlsafe(8)
    digest = (
        base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
        .rstrip(b"=")
        .decode()
    )
    own = {"client_id": "app", "redirect_uri": REDIRECT_URI}
    challenge = {"code_challenge": digest, "code_challenge_method": "S256"}
    params = {
        **own,
        **challenge,
        "response_type": "code",
        "scope": "profile",
        "state": state,
    }
    returned = httpx.URL(
        client.get(f"{issuer}/authorize", params=params).headers["location"]
    ).params
    assert returned["state"] == state
    form = {
        **own,
        "grant_type": "authorization_code",
        "code": returned["code"],
        "code_verifier": verifier,
    }
    assert client.post(f"{issuer}/token", data=form).json()["access_token"]


if __name__ == "__main__":
    sys.exit(in_app() if sys.argv[1:] == ["app"] else main())
