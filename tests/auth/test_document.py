"""Every name of the document has its counterpart, and its place in the documentation."""

import json
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path
from typing import Final

import pytest

from pytest_device import auth
from pytest_device.auth.config import python_names
from tests.docs_pages import DOCS

DOCUMENT: Final[dict[str, dict[str, list[str]]]] = json.loads(
    Path(__file__).with_name("data").joinpath("document.json").read_text("utf-8")
)
"""Its names with their counterparts, and the fields of its types."""
NAMES: Final = DOCUMENT["names"]
ERROR: Final = {"error": "invalid_grant"}
INSTANCES: Final[dict[str, object]] = {
    "AuthRequest": auth.AuthRequest({"clientId": "c", "redirectUri": "myapp://r"}),
    **{
        name: getattr(auth, name)()
        for name in DOCUMENT["fields"]
        if name.endswith(("Config", "Document", "Response"))
    },
    **{
        name: getattr(auth, name)(ERROR)
        for name in DOCUMENT["fields"]
        if name.endswith("Error")
    },
}
WITHOUT_JOSERFC: Final = """
import sys
sys.modules["joserfc"] = None
from pytest_device import auth
discovery = {"authorizationEndpoint": "http://127.0.0.1:1/a", "tokenEndpoint": "http://127.0.0.1:1/t"}
config = {"clientId": "c", "redirectUri": "myapp://r", "scopes": ["openid"]}
for send in (
    lambda: auth.AuthRequest(config).prompt(discovery, browser=print),
    lambda: auth.exchange_code({**config, "code": "x"}, discovery),
    lambda: auth.refresh({"clientId": "c", "refreshToken": "r", "scopes": ["openid"]}, discovery),
    lambda: auth.load(config, "http://127.0.0.1:1"),
):
    try:
        send()
    except auth.AuthConfigError as error:
        print(error)
"""


@pytest.mark.parametrize("name", NAMES)
def test_each_documented_name_has_a_row_and_a_counterpart(name: str) -> None:
    page = (DOCS / "sign-in-library.md").read_text("utf-8")

    assert re.search(rf"`{name}`", page)
    for counterpart in NAMES[name]:
        assert attrgetter(counterpart)(auth)


@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind, fields in DOCUMENT["fields"].items() for field in fields],
)
def test_each_documented_type_has_its_fields(kind: str, field: str) -> None:
    (name,) = python_names({field: ""})

    assert hasattr(INSTANCES[kind], name)


def test_openid_without_the_extra_is_an_error_before_anything_is_sent() -> None:
    command = [sys.executable, "-c", WITHOUT_JOSERFC]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.count("pip install 'pytest-device[auth]'") == 4
    assert "http" not in done.stdout


def test_without_its_extra_the_provider_names_the_package_to_install() -> None:
    program = "import sys; sys.modules['starlette'] = None; import pytest_device.auth.provider"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert "needs starlette: pip install 'pytest-device[services]'" in done.stderr
