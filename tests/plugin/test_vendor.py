"""The vendor's profile in a run: one pair of options for the project, links and services, and for the command line."""

import json

import pytest

from pytest_device.cli import main
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.project import links_of
from tests.app.rows import put
from tests.app.test_vendor import PROJECT_ID, REQUESTS, project_files

INI = """
[pytest]
device_app_root = app
device_vendor = acme
device_vendor_names =
    client_id_header=Forge-Client-ID
    client_scheme = acm, project_id_path=extra.forge.projectId
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    put(pytester.path / "app", project_files())
    pytester.makeini(INI)
    (pytester.path / "requests.json").write_text(json.dumps(REQUESTS))
    return pytester


def test_the_services_of_a_run_answer_the_clients_of_its_vendor(
    project: pytest.Pytester,
) -> None:
    project.makepyfile("""
        import json
        import pathlib

        import httpx
        import pytest

        REQUESTS = json.loads(pathlib.Path("requests.json").read_text())

        @pytest.mark.parametrize("request_", REQUESTS["updates"], ids=lambda one: one["name"])
        def test_updates(device_update_service, request_):
            reply = httpx.get(device_update_service.url, headers=request_["headers"])
            assert reply.status_code == 200, reply.text
            assert reply.headers["acme-protocol-version"] == "1"
            [seen] = device_update_service.requests
            wanted = request_["seen"]
            found = {name: getattr(seen, name) for name in wanted}
            assert found == {**wanted, "failed_update_ids": tuple(wanted["failed_update_ids"])}
            assert device_update_service.devices == (wanted["device"],)

        def test_push(device_push_endpoint):
            known = REQUESTS["push"]
            url = f"{device_push_endpoint.base_url}{known['path']}"
            reply = httpx.post(url, json=known["body"])
            assert reply.json()["data"][known["reply_key"]].startswith("AcmePushToken[")

        def test_sign_in(device_identity_provider, device_link):
            from pytest_device.auth import AuthRequest
            assert device_link("/notes/[id]", id="7") == "notes://notes/7"
            uris = device_identity_provider.client().redirect_uris
            assert {"notes://redirect", "notes://"} <= set(uris)
            assert {"http://127.0.0.1/callback", "http://127.0.0.1/redirect"} <= set(uris)
    """)

    project.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=5)


def test_links_and_the_app_id_follow_the_profile(project: pytest.Pytester) -> None:
    config = project.parseconfig()
    settings = settings_of(config)
    from pytest_device.plugin.project import project_of

    app = project_of(config)

    assert app is not None
    assert settings.app_id == PROJECT_ID
    marker = {"vendor_go": True, "open_url": "acm://192.168.1.5:8081"}
    assert (
        links_of(app, {"": marker})("/notes/[id]", id="7")
        == "acm://192.168.1.5:8081/--/notes/7"
    )


@pytest.mark.usefixtures("project")
def test_the_command_line_reads_the_settings_of_a_run(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def profile(*arguments: str) -> dict[str, tuple[str, str]]:
        main(["app", "check", "--format=json", *arguments])
        found = json.loads(capsys.readouterr().out)["profile"]
        return {one["field"]: (one["value"], one["status"]) for one in found}

    assert profile()["project_id_path"] == ("extra.forge.projectId", "found")
    assert profile("--vendor-names=project_id_path=extra.x")["project_id_path"] == (
        "extra.x",
        "not found",
    )

    monkeypatch.setenv("DEVICE_VENDOR_NAMES", "key=other")
    assert profile()["key"] == ("other", "not found")


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ("header_prefix=acme", "header_prefix must be letters, digits and hyphens"),
        (
            "client_schema=acm",
            "push_reply_key, token_type: did you mean 'client_scheme'?",
        ),
        ("zzz", "must be NAME=VALUE, of key, environment_prefix, header_prefix"),
    ],
)
def test_an_invalid_name_is_one_line_with_its_source(
    names: str,
    problem: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEVICE_VENDOR_NAMES", names)

    assert main(["app", "check"]) == 2

    [line] = capsys.readouterr().err.strip().splitlines()
    assert f"DEVICE_VENDOR_NAMES={names!r} must be NAME=VALUE" in line
    assert problem in line


def test_the_ini_file_may_have_options_of_other_plugins(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    project.makeini(f"{INI}addopts = -n2\n")

    main(["app", "check", "--format=json"])

    printed = capsys.readouterr()
    assert "does not start here" not in printed.err
    found = {one["field"]: one["value"] for one in json.loads(printed.out)["profile"]}
    assert found["project_id_path"] == "extra.forge.projectId"


def test_without_a_usable_ini_file_a_note_says_so(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    project.makeini("[pytest]\naddopts = --no-such-option\n")

    assert main(["app", "check", "app", "--vendor=acme"]) in (0, 1)

    assert "note: pytest does not start here" in capsys.readouterr().err


def test_a_project_id_elsewhere_is_noted_in_the_header(
    project: pytest.Pytester,
) -> None:
    project.makeini(INI.replace(", project_id_path=extra.forge.projectId", ""))
    project.makepyfile("def test_x(device_app): pass")

    result = project.runpytest_inprocess("-p", "no:cacheprovider")

    where = "no project ID at extra.acme.projectId, but at extra.forge.projectId"
    setting = "set device_vendor_names = project_id_path=extra.forge.projectId"
    result.stdout.fnmatch_lines([f"device app: {where}: {setting}"])
