"""Whether a build loads an update, with each reason against it."""

import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from pytest_device import ConfigError
from pytest_device.updates import (
    NOTHING,
    Asset,
    Build,
    DisabledReason,
    Signature,
    Update,
    UpdateSettings,
    generate_code_signing,
    will_load,
)
from tests.updates.rows import (
    ASSET,
    BUILD,
    EMBEDDED,
    SETTINGS,
    UPDATE,
    URL,
    reference_signing,
)

pytestmark = pytest.mark.every_python

WITH_PATH = replace(
    BUILD,
    settings=UpdateSettings.from_config(
        {"updates": {"url": URL, "codeSigningCertificate": "cert.pem"}}
    ),
)
CERTIFICATE = reference_signing().certificate
SIGNED = replace(WITH_PATH, certificate=CERTIFICATE)
OTHER = generate_code_signing("Other", 1)


def codes(update: Update, build: Build) -> list[str]:
    verdict = will_load(update, build)
    found = [str(reason.code) for reason in verdict.reasons]
    assert all(reason.detail for reason in verdict.reasons)
    assert verdict.ok is (
        (None if {*found} == {"unknown"} else False) if found else True
    )
    return found


def test_an_update_loads_unless_there_is_a_reason_against_it() -> None:
    assert codes(UPDATE, BUILD) == []
    assert codes(replace(UPDATE, signature=Signature.valid(CERTIFICATE)), SIGNED) == []
    assert codes(replace(UPDATE, assets=[]), replace(BUILD, running=NOTHING)) == []


def with_settings(**updates: object) -> Build:
    return replace(BUILD, settings=UpdateSettings.from_config({"updates": updates}))


@pytest.mark.parametrize(
    ("update", "build", "expected"),
    [
        (UPDATE, with_settings(url=URL, enabled=False), "disabled"),
        (UPDATE, with_settings(), "url_missing"),
        (UPDATE, with_settings(url="nowhere"), "url_invalid"),
        (
            UPDATE,
            replace(
                BUILD, settings=SETTINGS.without(DisabledReason.NO_RUNTIME_VERSION)
            ),
            "disabled",
        ),
        (
            UPDATE,
            replace(BUILD, settings=UpdateSettings(enabled=False, url=URL)),
            "disabled",
        ),
        (replace(UPDATE, platform="android"), BUILD, "platform"),
        (replace(UPDATE, runtime_version="1.0.0"), BUILD, "runtime_version"),
        (replace(UPDATE, scope="https://other.example"), BUILD, "scope"),
        (replace(UPDATE, signature=Signature.missing()), SIGNED, "signature_missing"),
        (UPDATE, replace(BUILD, certificate=CERTIFICATE), "signature_missing"),
        (
            replace(UPDATE, signature=Signature.invalid(CERTIFICATE)),
            SIGNED,
            "signature_invalid",
        ),
        (
            replace(UPDATE, assets=[ASSET, Asset("logo", "h", None, False)]),
            BUILD,
            "asset_missing",
        ),
        (
            replace(UPDATE, assets=[ASSET, Asset("logo", "h", "i", True)]),
            BUILD,
            "asset_hash",
        ),
        (EMBEDDED, BUILD, "not_newer"),
        (replace(UPDATE, created_at=EMBEDDED.created_at), BUILD, "not_newer"),
        (UPDATE, replace(BUILD, running=replace(UPDATE, id="v")), "not_newer"),
    ],
)
def test_a_fact_against_an_update_is_a_reason(
    update: Update, build: Build, expected: str
) -> None:
    assert codes(update, build) == [expected]


UNKNOWN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(
        ({name: None}, {})
        for name in ("runtime_version", "platform", "created_at", "scope", "assets")
    ),
    *(
        ({}, {name: None})
        for name in ("runtime_version", "platform", "settings", "running", "scope")
    ),
    ({"assets": [Asset("logo", "h", "h", None)]}, {}),
    ({"assets": [Asset("logo", None, "h", True)]}, {}),
    ({"assets": [Asset("logo", "h", None, True)]}, {}),
    ({"signature": None}, {"settings": WITH_PATH.settings}),
    ({"signature": Signature.valid(CERTIFICATE)}, {"settings": WITH_PATH.settings}),
    *(
        ({"signature": state(OTHER.certificate)}, {"certificate": CERTIFICATE})
        for state in (Signature.valid, Signature.invalid)
    ),
    ({}, {"running": replace(EMBEDDED, created_at=None)}),
]


@pytest.mark.parametrize(("of_update", "of_build"), UNKNOWN)
def test_a_missing_fact_is_unknown(
    of_update: dict[str, Any], of_build: dict[str, Any]
) -> None:
    assert codes(replace(UPDATE, **of_update), replace(BUILD, **of_build)) == [
        "unknown"
    ]


def test_a_certificate_with_other_line_ends_is_the_same() -> None:
    update = replace(
        UPDATE, signature=Signature.valid(CERTIFICATE.replace("\n", "\r\n"))
    )

    assert codes(update, SIGNED) == []


def test_without_facts_all_are_unknown() -> None:
    assert set(codes(Update("u"), Build())) == {"unknown"}


def test_all_reasons_are_reported_at_once() -> None:
    update = replace(UPDATE, platform="android", runtime_version="2", created_at=None)

    assert codes(update, BUILD) == ["platform", "runtime_version", "unknown"]


def test_times_with_and_without_a_zone_compare() -> None:
    later = datetime(2026, 1, 1) + timedelta(seconds=1)  # noqa: DTZ001  # as some write it

    assert codes(replace(UPDATE, created_at=later), BUILD) == []


def test_a_creation_time_can_be_an_iso_8601_string() -> None:
    assert Update("u", created_at="2026-01-01T00:00:00Z") == Update(  # type: ignore[arg-type]
        "u", created_at=EMBEDDED.created_at
    )
    for wrong in ("today", 1767225600000):
        with pytest.raises(ConfigError, match="must be a datetime"):
            Update("u", created_at=wrong)  # type: ignore[arg-type]


def test_will_load_needs_no_extra() -> None:
    code = (
        "import sys\nfor name in ('cryptography', 'http_sf', 'starlette', 'uvicorn'): sys.modules[name] = None\n"
        "from pytest_device.errors import ConfigError\n"
        "from pytest_device.updates import Build, Update, sign, will_load\n"
        "print(will_load(Update('u'), Build()).ok)\n"
        "try: sign(b'', 'key')\nexcept ConfigError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == [
        "None",
        "code signing needs cryptography: pip install 'pytest-device[services]'",
    ]
