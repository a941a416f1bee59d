"""The service's side of the published protocol, read by a reader that shares no code with it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import httpx
import pytest

from pytest_device import ConfigError
from pytest_device.app import VendorProfile
from pytest_device.updates import UpdateError, sign, signature_header
from pytest_device.updates.protocol import (
    Answer,
    ServedAsset,
    ServedRollBack,
    ServedUpdate,
    UpdateRequest,
)
from pytest_device.updates.published_protocol_v1 import PublishedProtocolV1
from tests.updates import second_reader
from tests.updates.rows import reference_signing

pytestmark = pytest.mark.every_python

KEY, CERTIFICATE = reference_signing()
PROTOCOL: Final = PublishedProtocolV1(VendorProfile())
REQUEST: Final = UpdateRequest("ios", "1.0", "main", keyid="root")
NOW: Final = datetime(2026, 5, 1, tzinfo=UTC)
ID: Final = "0f6f5a3e-9d2c-4c0b-8c9d-2b1f6d3c5a11"
UPDATE: Final = ServedUpdate(
    ID,
    NOW,
    "1.0",
    ServedAsset(
        "bundle", "h1", "application/javascript", "js", "https://u.example/assets/h1"
    ),
    (ServedAsset("logo", "h2", "image/png", "png", "https://u.example/assets/h2"),),
    {"branch": "ü"},
    {"scopeKey": "@me/app"},
)
HEADERS: Final = {
    "vendor-protocol-version": "1",
    "vendor-platform": "ios",
    "vendor-runtime-version": "1.0",
}


def written(answer: Answer, request: UpdateRequest = REQUEST) -> httpx.Response:
    reply = PROTOCOL.write_reply(answer, request, lambda body: sign(body, KEY))
    return httpx.Response(reply.status, headers=dict(reply.headers), content=reply.body)


@pytest.mark.parametrize("takes_parts", [True, False], ids=["parts", "json"])
def test_an_update_is_written_with_its_signature(takes_parts: bool) -> None:  # noqa: FBT001  # a parameter
    part = second_reader.read(
        written(UPDATE, replace(REQUEST, takes_parts=takes_parts))
    )

    assert part
    assert part.name == "manifest"
    assert part.content == {
        "id": ID,
        "createdAt": "2026-05-01T00:00:00.000Z",
        "runtimeVersion": "1.0",
        "launchAsset": {
            "hash": "h1",
            "key": "bundle",
            "contentType": "application/javascript",
            "url": "https://u.example/assets/h1",
            "fileExtension": ".js",
        },
        "assets": [
            {
                "hash": "h2",
                "key": "logo",
                "contentType": "image/png",
                "url": "https://u.example/assets/h2",
                "fileExtension": ".png",
            }
        ],
        "metadata": {"branch": "ü"},
        "extra": {"scopeKey": "@me/app"},
    }
    assert second_reader.is_signed(part, CERTIFICATE, "root")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(None, "noUpdateAvailable"), (ServedRollBack(NOW), "rollBackToEmbedded")],
)
def test_a_directive_is_signed_too(answer: Answer, kind: str) -> None:
    part = second_reader.read(written(answer))

    assert part
    assert (part.name, part.content["type"]) == ("directive", kind)
    assert second_reader.is_signed(part, CERTIFICATE, "root")


def test_an_app_without_multipart_gets_a_status_instead_of_a_directive() -> None:
    request = replace(REQUEST, takes_parts=False)

    assert written(None, request).status_code == 204
    assert written(ServedRollBack(NOW), request).status_code == 406


def test_an_app_that_expects_no_signature_gets_none() -> None:
    part = second_reader.read(written(UPDATE, replace(REQUEST, keyid=None)))

    assert part
    assert part.signature is None


def test_a_request_is_read_with_all_its_headers() -> None:
    others = {
        "accept": "multipart/mixed, application/json;q=0.9",
        "vendor-channel-name": "main",
        "vendor-current-update-id": ID,
        "vendor-embedded-update-id": "e",
        "vendor-expect-signature": 'sig, keyid="root", alg="rsa-v1_5-sha256"',
        "vendor-fatal-error": "no bundle",
        "vendor-recent-failed-update-ids": '"a", "b"',
    }

    assert PROTOCOL.read_request({**HEADERS, **others}) == UpdateRequest(
        "ios",
        "1.0",
        "main",
        ID,
        "e",
        "root",
        fatal_error="no bundle",
        failed_update_ids=("a", "b"),
    )
    only_json = {**HEADERS, "accept": "application/json"}
    assert PROTOCOL.read_request(only_json) == UpdateRequest(
        "ios", "1.0", takes_parts=False
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"vendor-protocol-version": "2"}, "is '2', must be 1"),
        ({"vendor-platform": "web"}, "must be ios or android"),
        ({"vendor-runtime-version": ""}, "vendor-runtime-version is missing"),
        (
            {"vendor-expect-signature": "sig, keyid=1"},
            "keyid in a structured field must be a string",
        ),
        ({"vendor-expect-signature": "?"}, "structured field is malformed"),
        (
            {"vendor-expect-signature": f'sig, keyid="{"a" * 9000}"'},
            "a structured field is longer than 8192 characters",
        ),
    ],
)
def test_a_malformed_request_is_a_typed_error(
    changes: dict[str, str], problem: str
) -> None:
    with pytest.raises(UpdateError, match=problem) as caught:
        PROTOCOL.read_request({**HEADERS, **changes})
    assert caught.value.code == "malformed"


def test_a_signature_header_has_the_key_and_the_algorithm() -> None:
    header = 'sig="YQ==", keyid="main", alg="rsa-v1_5-sha256"'

    assert signature_header("YQ==", "main") == header
    with pytest.raises(ConfigError, match="keyid 'ü' must be printable ASCII"):
        signature_header("YQ==", "ü")
