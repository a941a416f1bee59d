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
from tests.docs_pages import DOCS

NAMES: Final[dict[str, list[str]]] = json.loads(
    Path(__file__).with_name("data").joinpath("document.json").read_text("utf-8")
)
WITHOUT_JOSERFC: Final = """
import sys
sys.modules["joserfc"] = None
from pytest_device import auth
discovery = {"authorizationEndpoint": "http://127.0.0.1:1/a", "tokenEndpoint": "http://127.0.0.1:1/t"}
config = {"clientId": "c", "redirectUri": "myapp://r", "scopes": ["openid"]}
for send in (
    lambda: auth.AuthRequest(config).prompt(discovery, browser=print),
    lambda: auth.exchange_code({**config, "code": "x"}, discovery),
):
    try:
        send()
    except auth.AuthConfigError as error:
        print(error)
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_document_has_its_row_and_its_counterpart(name: str) -> None:
    page = (DOCS / "sign-in.md").read_text("utf-8")

    assert re.search(rf"`{name}`", page)
    for counterpart in NAMES[name]:
        assert attrgetter(counterpart)(auth)


def test_openid_without_the_extra_is_an_error_before_anything_is_sent() -> None:
    command = [sys.executable, "-c", WITHOUT_JOSERFC]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.count("pip install 'pytest-device[auth]'") == 2
    assert "http" not in done.stdout
