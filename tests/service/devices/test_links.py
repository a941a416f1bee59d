"""Which URL of a web app a deep link opens."""

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.devices.links import address_in, app_for, is_within

BASE = "http://127.0.0.1:4000"


@pytest.mark.parametrize(
    ("base", "link", "address"),
    [
        (BASE, "notes://item/3?x=1#end", f"{BASE}/item/3?x=1#end"),
        (BASE, "notes:///item/3", f"{BASE}/item/3"),
        (BASE, "notes:item", f"{BASE}/item"),
        (BASE, "notes://item/", f"{BASE}/item/"),
        (BASE, "notes://", f"{BASE}/"),
        (f"{BASE}/shop/", "notes://item/3", f"{BASE}/shop/item/3"),
        (f"{BASE}/shop", "notes://item/3", f"{BASE}/shop/item/3"),
        (f"{BASE}/shop/index.html?a=b", "notes://item/3", f"{BASE}/shop/item/3"),
        (BASE, "https://notes.example.com/item/3", f"{BASE}/item/3"),
        (BASE, f"{BASE}/item/3", f"{BASE}/item/3"),
    ],
)
def test_a_link_opens_its_host_and_path_in_the_app(
    base: str, link: str, address: str
) -> None:
    assert address_in(base, link) == address


@pytest.mark.parametrize(
    ("base", "address", "expected"),
    [
        (BASE, f"{BASE}/", True),
        (BASE, f"{BASE}/item/3?x=1", True),
        (f"{BASE}/shop/", f"{BASE}/shop", True),
        (f"{BASE}/shop/", f"{BASE}/shopping", False),
        (BASE, "http://127.0.0.1:4001/", False),
        (BASE, "https://127.0.0.1:4000/", False),
        (BASE, "data:text/html,home", False),
    ],
)
def test_a_url_belongs_to_the_app_that_contains_it(
    base: str, address: str, *, expected: bool
) -> None:
    assert is_within(base, address) is expected


@pytest.mark.parametrize(
    ("schemes", "front", "app"),
    [
        ({"first": "other", "second": "notes"}, "first", "second"),
        ({"only": None}, None, "only"),
        ({"first": None, "second": None}, "second", "second"),
        ({"first": "other", "second": None}, "second", "second"),
    ],
)
def test_a_link_belongs_to_the_app_of_its_scheme_or_to_the_only_candidate(
    schemes: dict[str, str | None], front: str | None, app: str
) -> None:
    assert app_for("notes://item", schemes, front) == app


@pytest.mark.parametrize(
    ("schemes", "front", "known"),
    [
        ({}, None, "no app is installed"),
        ({"only": "other"}, "only", r"only \(other\)"),
        (
            {"first": None, "second": None},
            None,
            r"first \(scheme unknown\), second \(scheme unknown\)",
        ),
        (
            {"first": "other", "second": None},
            "first",
            r"first \(other\), second \(scheme unknown\)",
        ),
    ],
)
def test_a_link_that_no_app_opens_is_refused(
    schemes: dict[str, str | None], front: str | None, known: str
) -> None:
    with pytest.raises(
        ControllerError, match=f"no app here opens notes://item: {known}"
    ):
        app_for("notes://item", schemes, front)
