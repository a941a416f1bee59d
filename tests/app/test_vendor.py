"""The vendor's profile: what follows from the word, what is refused, and what real clients need of it."""

import dataclasses
import json
import runpy
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from pytest_device import ConfigError
from pytest_device.app import VendorProfile, load_project
from pytest_device.app.checks import check
from pytest_device.app.checks.vendor import profile_entries
from pytest_device.app.routes.declarations import python_module
from pytest_device.auth.redirect import make_redirect_uri
from pytest_device.notifications import PushTokenRequest
from pytest_device.notifications.endpoint import PushEndpoint
from tests.app.rows import DATA, put

REQUESTS: Final[dict[str, Any]] = json.loads(
    (DATA / "client_requests.json").read_text(encoding="utf-8")
)
"""Requests of the vendor's own libraries, with other words, and the profile that they need."""
PROFILE: Final = VendorProfile(**REQUESTS["profile"])
PROJECT_ID: Final = REQUESTS["push"]["body"]["projectId"]


def project_files(**more: object) -> dict[str, object]:
    """Return the files of a project whose vendor has several words."""
    return {
        "package.json": {"name": "notes", "dependencies": {"acme": "^58.0.0"}},
        "node_modules/acme/package.json": {"name": "acme", "version": "58.0.0"},
        "app.json": {
            "acme": {
                "scheme": "notes",
                "extra": {"forge": {"projectId": PROJECT_ID}},
            }
        },
        "app/index.tsx": "",
        "app/notes/[id].tsx": "",
        **more,
    }


def test_all_names_follow_from_the_word() -> None:
    assert dataclasses.asdict(VendorProfile("acme")) == {
        "word": "acme",
        "key": "acme",
        "environment_prefix": "ACME_",
        "header_prefix": "acme-",
        "client_id_header": "acme-client-id",
        "client_scheme": "acmego",
        "project_id_path": "extra.acme.projectId",
        "push_path": "push/getAcmePushToken",
        "push_reply_key": "acmePushToken",
        "token_type": "acme",
    }
    assert VendorProfile().push_path == "push/getPushToken"


def test_a_profile_is_immutable_and_equal_to_one_with_the_same_names() -> None:
    profile = VendorProfile("acme", header_prefix="Acme-")

    assert profile == VendorProfile("acme")
    assert dataclasses.replace(profile, client_scheme="acm").own() == {
        "client_scheme": "acm"
    }
    with pytest.raises(dataclasses.FrozenInstanceError):
        profile.key = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("word", "Acme Inc", "one lowercase word"),
        ("key", "a.b", "a key of letters"),
        ("environment_prefix", "ACME", "end in _"),
        ("header_prefix", "acme", "end in -"),
        ("client_id_header", "client id", "letters, digits and hyphens"),
        ("client_scheme", "Acme", "a lowercase letter"),
        ("project_id_path", "extra..id", "keys with dots"),
        ("push_path", "/push", "without a slash at its ends"),
        ("push_reply_key", "a-b", "letters, digits and _"),
        ("token_type", "A", "begins with a lowercase letter"),
        ("key", 5, "a key of letters"),
    ],
)
def test_a_value_that_breaks_its_rule_is_refused(
    field: str, value: Any, rule: str
) -> None:
    with pytest.raises(ConfigError, match=f"{value!r} must be .*{rule}"):
        VendorProfile(**{field: value})


def test_the_profile_has_the_scheme_of_redirects_to_the_development_client() -> None:
    assert (
        make_redirect_uri(
            {"path": "redirect"},
            environment="store_client",
            host_uri="10.0.0.2:8081",
            vendor=PROFILE,
        )
        == "acm://10.0.0.2:8081/--/redirect"
    )


def test_the_endpoint_answers_a_client_with_the_profiles_names() -> None:
    known = REQUESTS["push"]
    with PushEndpoint(vendor=PROFILE) as endpoint:
        reply = httpx.post(f"{endpoint.base_url}{known['path']}", json=known["body"])

        assert reply.status_code == 200
        assert endpoint.tokens[0].type == known["type"]
        assert reply.json()["data"][known["reply_key"]] == endpoint.tokens[0].data
        other = httpx.post(f"{endpoint.base_url}push/getPushToken", json=known["body"])
        assert other.status_code == 404


def test_a_token_request_uses_the_profiles_names() -> None:
    body = REQUESTS["push"]["body"]
    with PushEndpoint(vendor=PROFILE) as endpoint, httpx.Client() as http:
        token = PushTokenRequest(
            platform="android",
            device_push_token={"type": "android", "data": body["deviceToken"]},
            application_id=body["appId"],
            device_id=body["deviceId"],
            config_extra={"forge": {"projectId": PROJECT_ID}},
            base_url=endpoint.base_url,
            vendor=PROFILE,
        ).send(http)

        assert endpoint.requests[0].body == body
        assert (token.type, token.data) == ("acme", endpoint.tokens[0].data)


def test_the_generated_links_load_the_project_with_the_same_profile(
    tmp_path: Path,
) -> None:
    root = put(tmp_path, project_files())
    routes = load_project(root, vendor=PROFILE).routes.linkable
    path = tmp_path / "app_routes.py"
    path.write_text(python_module(routes, ".", PROFILE))

    found = runpy.run_path(str(path))

    assert found["device_link"]("/notes/[id]", id="7") == "notes://notes/7"
    assert (
        'VendorProfile("acme", client_id_header="forge-client-id"' in path.read_text()
    )


def entries(root: Path, profile: VendorProfile) -> dict[str, str]:
    project = load_project(root, vendor=profile)
    return {one.field: f"{one.status} {one.where}" for one in profile_entries(project)}


def test_the_check_says_where_the_project_has_the_names_of_the_profile(
    tmp_path: Path,
) -> None:
    root = put(tmp_path, project_files())

    assert entries(root, VendorProfile("acme")) == {
        "key": "found in app.json",
        "project_id_path": "not found in the app config, which has extra.forge.projectId",
        "environment_prefix": "unknown : no environment file sets a variable",
    }

    put(root, {".env": "ACME_PUBLIC_URL=x"})
    found = entries(root, PROFILE)

    assert found["project_id_path"] == "found in the app config"
    assert found["environment_prefix"] == (
        "found in the environment files: ACME_PUBLIC_URL"
    )


def test_a_project_id_elsewhere_is_a_finding_with_its_fix(tmp_path: Path) -> None:
    root = put(tmp_path, project_files())

    def fixes(profile: VendorProfile) -> list[str]:
        findings = check(load_project(root, vendor=profile))
        return [
            one.fix
            for one in findings
            if one.id == "vendor-profile" and one.status == "failed"
        ]

    assert fixes(PROFILE) == []
    assert fixes(VendorProfile("acme")) == [
        "set device_vendor_names = project_id_path=extra.forge.projectId"
    ]
