"""The update service, called like an app would, and read by a reader that shares no code with it."""

import math
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from pytest_device import ConfigError
from pytest_device.app import VendorProfile
from pytest_device.updates import (
    LaunchModel,
    Offer,
    Update,
)
from pytest_device.updates.service import DeviceUpdateService
from tests.updates import second_reader
from tests.updates.rows import BUILD, export, reference_signing

pytestmark = pytest.mark.every_python

KEY, CERTIFICATE = reference_signing()
HEADERS = {
    "vendor-protocol-version": "1",
    "vendor-platform": "ios",
    "vendor-runtime-version": "1.0",
}
SIGNED = {
    **HEADERS,
    "vendor-expect-signature": 'sig, keyid="main", alg="rsa-v1_5-sha256"',
}


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with httpx.Client() as client:
        yield client


@pytest.fixture
def service() -> Iterator[DeviceUpdateService]:
    with DeviceUpdateService(signing=reference_signing()) as running:
        yield running


@pytest.fixture
def published(service: DeviceUpdateService, tmp_path: Path) -> Update:
    return service.publish(export(tmp_path), runtime_version="1.0")["ios"]


def ask(
    service: DeviceUpdateService, http: httpx.Client, **headers: str
) -> httpx.Response:
    named = {
        f"vendor-{name.replace('_', '-')}": value for name, value in headers.items()
    }
    return http.get(
        service.url, headers={"accept": "multipart/mixed", **HEADERS, **named}
    )


def manifest_id(answer: httpx.Response) -> str:
    part = second_reader.read(answer)
    return str(part.content.get("id") or part.content["type"]) if part else "nothing"


def test_an_app_gets_the_update_with_its_assets(
    service: DeviceUpdateService, http: httpx.Client, published: Update
) -> None:
    part = second_reader.read(http.get(service.url, headers=SIGNED))

    assert part
    assert part.content["id"] == published.id
    assert part.content["runtimeVersion"] == "1.0"
    assert second_reader.is_signed(part, CERTIFICATE, "main")
    files = [part.content["launchAsset"], *part.content["assets"]]
    assert [one["contentType"] for one in files] == [
        "application/javascript",
        "image/png",
    ]
    for one in files:
        answer = http.get(one["url"])
        assert second_reader.hash_of(answer.content) == one["hash"]
        assert answer.headers["content-type"] == one["contentType"]
    assert http.get(files[0]["url"]).text == "ios v1"


def test_an_app_that_has_the_newest_update_gets_nothing(
    service: DeviceUpdateService, http: httpx.Client, published: Update
) -> None:
    for update_id in (published.id, published.id.upper()):
        assert (
            manifest_id(ask(service, http, current_update_id=update_id))
            == "noUpdateAvailable"
        )
    assert ask(service, http, runtime_version="2.0").status_code == 200
    for other in (
        {"runtime_version": "2.0"},
        {"platform": "android"},
        {"channel_name": "beta"},
    ):
        assert manifest_id(ask(service, http, **other)) == "noUpdateAvailable"
    json_only = http.get(
        service.url,
        headers={**HEADERS, "accept": "application/json", "vendor-platform": "android"},
    )
    assert json_only.status_code == 204


def test_a_health_check_is_not_taken_for_an_app(
    service: DeviceUpdateService, http: httpx.Client
) -> None:
    service.fail("server_error")
    assert http.head(service.url, headers=HEADERS).status_code == 405
    assert not service.requests
    assert http.get(service.url, headers=HEADERS).status_code == 500


def test_the_later_update_wins_even_within_a_millisecond(
    service: DeviceUpdateService, http: httpx.Client, published: Update, tmp_path: Path
) -> None:
    second = service.publish(export(tmp_path, "v2"), runtime_version="1.0")["ios"]

    assert manifest_id(ask(service, http)) == second.id
    assert second.created_at
    assert published.created_at
    assert second.created_at > published.created_at
    again = service.publish(export(tmp_path, "v1"), runtime_version="1.0")["ios"]
    assert len({published.id, second.id, again.id}) == 3


def test_channels_have_their_own_updates(
    service: DeviceUpdateService, http: httpx.Client, published: Update, tmp_path: Path
) -> None:
    beta = service.publish(
        export(tmp_path / "b"), runtime_version="1.0", channel="beta"
    )["ios"]

    assert manifest_id(ask(service, http, channel_name="beta")) == beta.id
    assert manifest_id(ask(service, http)) == published.id


def test_a_rollback_reaches_apps_that_do_not_run_the_embedded_update(
    service: DeviceUpdateService, http: httpx.Client, published: Update
) -> None:
    service.roll_back_to_embedded(runtime_version="1.0")

    part = second_reader.read(
        ask(service, http, current_update_id=published.id, embedded_update_id="e")
    )
    assert part
    assert (part.name, part.content["type"]) == ("directive", "rollBackToEmbedded")
    assert (
        manifest_id(ask(service, http, current_update_id="E", embedded_update_id="e"))
        == "noUpdateAvailable"
    )


def test_a_share_of_devices_gets_an_update_consistently(
    service: DeviceUpdateService, http: httpx.Client, published: Update, tmp_path: Path
) -> None:
    second = service.publish(export(tmp_path, "v2"), runtime_version="1.0", share=0.5)[
        "ios"
    ]
    names = [f"phone-{number}" for number in range(40)]

    def lucky() -> set[str]:
        return {
            name
            for name in names
            if manifest_id(ask(service, http, client_id=name)) == second.id
        }

    half = lucky()
    assert 3 < len(half) < 37
    assert lucky() == half
    service.roll_out(second.id, 0.8)
    assert lucky() > half
    service.roll_out(second.id, 0)
    assert lucky() == set()
    assert manifest_id(ask(service, http)) == published.id


def test_a_signature_can_be_broken_on_purpose(
    service: DeviceUpdateService, http: httpx.Client, published: Update
) -> None:
    service.fail("wrong_signature")
    service.fail("missing_signature", times=2)
    answers = [http.get(service.url, headers=SIGNED) for _ in range(3)]
    service.fail("wrong_signature")
    answers.append(http.get(service.url, headers=SIGNED))

    offers = [second_reader.offer(one, CERTIFICATE, "main").update for one in answers]
    assert {one.id for one in offers if one} == {published.id}
    # Both kinds are due at the first request: a signature that is missing is not wrong.
    assert [one.signature and one.signature.state for one in offers if one] == [
        "missing",
        "missing",
        "valid",
        "invalid",
    ]


def test_hashes_and_assets_can_be_broken_on_purpose(
    service: DeviceUpdateService, http: httpx.Client, published: Update
) -> None:
    def asset() -> tuple[str, bytes]:
        part = second_reader.read(ask(service, http))
        assert part
        return part.content["launchAsset"]["hash"], http.get(
            part.content["launchAsset"]["url"]
        ).content

    for kind in ("wrong_hash", "corrupt_asset"):
        service.fail(kind)
        stated, content = asset()
        assert second_reader.hash_of(content) != stated, kind
        stated, content = asset()
        assert second_reader.hash_of(content) == stated
    service.fail("half_body", on="asset")
    assert asset()[1] == b"ios"
    service.fail("corrupt_asset")
    assert (
        http.get(f"{service.local_url}/assets/{stated}").headers["cache-control"]
        == "no-store"
    )
    assert [one.failure for one in service.requests if one.failure] == [
        "wrong_hash",
        "corrupt_asset",
        "half_body",
        "corrupt_asset",
    ]
    assert service.wait_for_request(published.id).answer == published.id


def test_the_service_fails_on_demand(
    service: DeviceUpdateService, http: httpx.Client, published: Update
) -> None:
    service.fail("server_error", times=2)
    assert [ask(service, http).status_code for _ in range(3)] == [500, 500, 200]
    service.fail("half_body")
    whole = ask(service, http)
    with pytest.raises(AssertionError):
        second_reader.read(whole)
    service.fail("slow", seconds=0.2)
    assert ask(service, http).elapsed >= timedelta(seconds=0.2)
    service.fail("server_error")
    service.clear_failures()
    assert manifest_id(ask(service, http)) == published.id


def test_the_service_records_the_requests_of_each_device(
    service: DeviceUpdateService, http: httpx.Client, published: Update
) -> None:
    thread = threading.Thread(
        target=ask,
        args=(service, http),
        kwargs={"client_id": "phone", "channel_name": "x"},
    )
    thread.start()
    seen = service.wait_for_request("nothing", device="phone")
    thread.join()

    assert (
        seen.kind,
        seen.platform,
        seen.runtime_version,
        seen.channel,
        seen.status,
    ) == (
        "manifest",
        "ios",
        "1.0",
        "x",
        200,
    )
    ask(service, http)
    assert "at 127.0.0.1" in service.requests[-1].device
    assert service.requests[-1].answer == published.id
    with pytest.raises(
        TimeoutError,
        match=r"no request with the answer 'roll-back' within 0 s; .* manifest nothing 200",
    ):
        service.wait_for_request("roll-back", timeout_seconds=0)
    assert (
        service.wait_for_request(published.id, after=1).device
        == service.requests[-1].device
    )


def test_a_request_that_violates_the_protocol_is_refused_with_the_reason(
    service: DeviceUpdateService, http: httpx.Client
) -> None:
    answer = http.get(service.url)

    assert (answer.status_code, answer.text) == (
        400,
        "the header vendor-protocol-version is missing\n",
    )
    assert http.get(f"{service.local_url}/assets/unknown").status_code == 404
    assert [one.status for one in service.requests] == [400, 404]


def test_a_wait_reports_what_apps_asked_for_instead(
    service: DeviceUpdateService, http: httpx.Client, published: Update
) -> None:
    http.get(service.url)
    ask(service, http, runtime_version="1.0.1", channel_name="beta")

    with pytest.raises(
        TimeoutError,
        match=r"manifest 400 \(the header vendor-protocol-version is missing\), "
        r"manifest nothing 200 \(ios, runtime version 1\.0\.1, channel beta\)",
    ):
        service.wait_for_request(published.id, timeout_seconds=0)


def test_devices_on_other_machines_get_the_public_url(
    http: httpx.Client, tmp_path: Path
) -> None:
    with DeviceUpdateService(
        public_url="https://tunnel.example/x/", vendor="acme"
    ) as service:
        service.publish(export(tmp_path), runtime_version="1.0")
        assert service.url == "https://tunnel.example/x/manifest"
        headers = {
            name.replace("vendor", "acme"): value for name, value in HEADERS.items()
        }
        part = second_reader.read(
            http.get(f"{service.local_url}/manifest", headers=headers), "acme"
        )

    assert part
    assert part.content["launchAsset"]["url"].startswith(
        "https://tunnel.example/x/assets/"
    )


def test_an_invalid_update_cannot_be_published(
    service: DeviceUpdateService, tmp_path: Path
) -> None:
    for wrong, problem in (
        (
            lambda: service.publish(tmp_path, runtime_version="1.0"),
            "has no metadata.json",
        ),
        (
            lambda: service.publish(export(tmp_path), runtime_version=".1"),
            "runtime_version '.1' is invalid",
        ),
        (
            lambda: service.publish(export(tmp_path), runtime_version="1", share=1.5),
            "share=1.5 must be 0 to 1",
        ),
        (
            lambda: service.roll_back_to_embedded(".1"),
            "runtime_version '.1' is invalid",
        ),
        (
            lambda: service.roll_back_to_embedded("1", channel="größe"),
            "channel 'größe' is invalid",
        ),
        (lambda: service.roll_out("x", 1), "update 'x' is not published"),
        (
            lambda: service.fail("corrupt_asset", on="manifest"),
            "does not apply to 'manifest'",
        ),
        (lambda: service.fail("slow", times=0), "must be a whole number, 1 or more"),
        (
            lambda: service.fail("slow", seconds=math.nan),
            "seconds=nan must be a number",
        ),
        (
            lambda: DeviceUpdateService(public_url="nowhere"),
            "public_url 'nowhere' must be a URL",
        ),
        (
            lambda: DeviceUpdateService(public_url="https://updates.example/?a=b"),
            "without query and fragment",
        ),
    ):
        with pytest.raises(ConfigError, match=problem):
            wrong()
    (tmp_path / "assets").rename(tmp_path / "gone")
    with pytest.raises(ConfigError, match="is missing: export again"):
        service.publish(tmp_path, runtime_version="1.0")


def test_an_export_with_a_missing_file_is_published_for_no_platform(
    service: DeviceUpdateService, http: httpx.Client, tmp_path: Path
) -> None:
    export(tmp_path, platforms=("ios", "android"))
    (tmp_path / "static" / "js" / "android" / "index-0123.hbc").unlink()

    with pytest.raises(ConfigError, match=r"android.* is missing: export again"):
        service.publish(tmp_path, runtime_version="1.0")

    ask(service, http)
    assert [request.answer for request in service.requests] == ["nothing"]


def test_the_model_follows_the_service(
    service: DeviceUpdateService, http: httpx.Client, published: Update
) -> None:
    def offered(model: LaunchModel) -> Offer:
        assert model.running
        headers = {**SIGNED, "vendor-current-update-id": model.running.id}
        answer = http.get(service.url, headers=headers)
        return second_reader.offer(answer, CERTIFICATE, "main")

    model, _ = LaunchModel(BUILD).launch()
    model, _ = model.fetch(offered(model))
    assert model.pending
    assert model.pending.id == published.id
    model, _ = model.reload()
    assert model.check(offered(model))[0].is_update_available is False
    service.roll_back_to_embedded(runtime_version="1.0")
    model, _ = model.fetch(offered(model))
    assert model.reload()[0].running == model.embedded


def test_a_crash_that_an_app_reports_can_be_waited_for(
    service: DeviceUpdateService, http: httpx.Client
) -> None:
    failed = "f6a6a4a8-1f20-4e5e-8a4d-0f2f8f1f5d11"
    ask(service, http)
    asking = threading.Thread(
        target=lambda: ask(
            service,
            http,
            fatal_error="no bundle",
            recent_failed_update_ids=f'"{failed}"',
            client_id="a",
        )
    )
    asking.start()

    seen = service.wait_for_crash()
    asking.join()

    assert (seen.fatal_error, seen.failed_update_ids) == ("no bundle", (failed,))
    assert service.wait_for_crash(failed.upper(), device="a") == seen
    with pytest.raises(TimeoutError, match="no crash report within"):
        service.wait_for_crash(device="b", timeout_seconds=0.01)
    with pytest.raises(TimeoutError, match="no report that update x failed"):
        service.wait_for_crash("x", timeout_seconds=0.01)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_an_error_may_be_in_any_language(
    service: DeviceUpdateService, http: httpx.Client, encoding: str
) -> None:
    headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    error = "échec".encode(encoding)

    http.get(service.url, headers=[*headers, (b"vendor-fatal-error", error)])

    assert service.requests[0].fatal_error == "échec"


def test_devices_are_counted_by_the_header_of_the_profile(http: httpx.Client) -> None:
    profile = VendorProfile("acme", client_id_header="forge-client-id")
    with DeviceUpdateService(vendor=profile) as service:
        for device in ("a", "b", "a"):
            headers = {
                "acme-protocol-version": "1",
                "acme-platform": "ios",
                "acme-runtime-version": "1.0",
                "Forge-Client-ID": device,
            }
            assert http.get(service.url, headers=headers).status_code == 200

        assert service.devices == ("a", "b")


@pytest.mark.parametrize("value", ['"a', "1, 2", "a=1", "(" * 9000])
def test_a_malformed_list_of_failed_updates_is_refused(
    service: DeviceUpdateService, http: httpx.Client, value: str
) -> None:
    assert ask(service, http, recent_failed_update_ids=value).status_code == 400
    assert service.requests[0].status == 400
