"""The adapter of the published protocol, without a service."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pytest_device import ConfigError
from pytest_device.updates import (
    NOTHING,
    Build,
    Offer,
    Reply,
    Signature,
    UpdateRequest,
    UpdateSettings,
    published_protocol_v1,
    sign,
    signature_header,
    will_load,
)
from pytest_device.updates.protocol import (
    Answer,
    ServedAsset,
    ServedRollBack,
    ServedUpdate,
)
from pytest_device.updates.values import UpdateError
from tests.updates import second_reader
from tests.updates.rows import reference_signing

pytestmark = pytest.mark.every_python

SIGNING: Final = reference_signing()
CERTIFICATE: Final = SIGNING.certificate
PROTOCOL: Final = published_protocol_v1()
REQUEST: Final = UpdateRequest("ios", "1.0", "main", keyid="root", scope="scope")
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


@cache
def private_key() -> RSAPrivateKey:
    """Return the parsed key: parsing takes longer than signing."""
    key = load_pem_private_key(SIGNING.private_key.encode(), None)
    assert isinstance(key, RSAPrivateKey)
    return key


def signed(body: bytes) -> str:
    return sign(body, private_key())


def reply(
    answer: Answer = UPDATE, request: UpdateRequest = REQUEST, **changes: Any
) -> Reply:
    return replace(PROTOCOL.write_reply(answer, request, signed), **changes)


def as_response(one: Reply) -> httpx.Response:
    return httpx.Response(one.status, headers=dict(one.headers), content=one.body)


@pytest.mark.parametrize("takes_parts", [True, False], ids=["parts", "json"])
def test_both_readers_read_an_update_as_written(takes_parts: bool) -> None:  # noqa: FBT001  # a parameter
    request = replace(REQUEST, takes_parts=takes_parts)
    written = reply(request=request)

    update = PROTOCOL.read_reply(written, request, CERTIFICATE).update
    assert update
    assert (update.id, update.runtime_version, update.platform, update.scope) == (
        ID,
        "1.0",
        "ios",
        "scope",
    )
    assert (update.created_at, update.signature) == (NOW, Signature.valid(CERTIFICATE))
    assert [(one.key, one.hash, one.present) for one in update.assets or ()] == [
        ("bundle", "h1", None),
        ("logo", "h2", None),
    ]
    other = second_reader.read(as_response(written))
    assert other
    assert (other.name, other.content) == ("manifest", update.manifest)
    assert other.content["createdAt"] == "2026-05-01T00:00:00.000Z"
    assert other.content["assets"][0]["fileExtension"] == ".png"
    assert second_reader.is_signed(other, CERTIFICATE, "root")


def test_a_request_is_read_as_written() -> None:
    request = replace(REQUEST, scope=None, current_update_id=ID, embedded_update_id=ID)
    headers = PROTOCOL.request_headers(request)

    assert PROTOCOL.read_request(headers) == request
    assert (
        headers["vendor-expect-signature"] == 'sig, keyid="root", alg="rsa-v1_5-sha256"'
    )
    plain = UpdateRequest("android", "1.0", takes_parts=False)
    assert PROTOCOL.read_request(PROTOCOL.request_headers(plain)) == plain
    assert "acme-platform" in published_protocol_v1("acme").request_headers(plain)


def test_both_readers_read_no_update_and_a_rollback() -> None:
    for answer, offer, kind in (
        (None, Offer(), "noUpdateAvailable"),
        (ServedRollBack(NOW), Offer(roll_back_at=NOW), "rollBackToEmbedded"),
    ):
        written = reply(answer)
        assert PROTOCOL.read_reply(written, REQUEST, CERTIFICATE) == offer
        other = second_reader.read(as_response(written))
        assert other
        assert (other.name, other.content["type"]) == ("directive", kind)
        assert second_reader.is_signed(other, CERTIFICATE, "root")


def test_an_app_without_multipart_gets_a_status_instead_of_a_directive() -> None:
    request = replace(REQUEST, takes_parts=False)

    assert (
        reply(None, request).status,
        reply(ServedRollBack(NOW), request).status,
    ) == (204, 406)
    assert PROTOCOL.read_reply(reply(None, request), request) == Offer()


def state_of(
    written: Reply,
    request: UpdateRequest = REQUEST,
    certificate: str | None = CERTIFICATE,
) -> str:
    update = PROTOCOL.read_reply(written, request, certificate).update
    assert update
    assert update.signature
    assert update.signature.certificate == (
        certificate if update.signature.state in ("valid", "invalid") else None
    )
    return update.signature.state


def test_a_signature_is_valid_invalid_missing_or_not_verified() -> None:
    assert state_of(reply()) == "valid"
    assert state_of(reply(body=reply().body.replace(b'"1.0"', b'"2.0"'))) == "invalid"
    assert state_of(reply(), replace(REQUEST, keyid="other")) == "invalid"
    assert (
        state_of(
            reply(body=reply().body.replace(b'sig="', b"sig=")), certificate=CERTIFICATE
        )
        == "invalid"
    )
    assert state_of(PROTOCOL.write_reply(UPDATE, REQUEST, lambda _: None)) == "missing"
    assert state_of(reply(), certificate=None) == "unverified"
    with pytest.raises(UpdateError) as caught:
        PROTOCOL.read_reply(
            PROTOCOL.write_reply(ServedRollBack(NOW), REQUEST, lambda _: None),
            REQUEST,
            CERTIFICATE,
        )
    assert caught.value.code == "signature_missing"


@pytest.mark.parametrize("claim", ["valid", "missing", 'sig="valid"', ""])
def test_a_reply_proves_nothing_with_the_words_of_its_signature(claim: str) -> None:
    plain = reply(request=replace(REQUEST, takes_parts=False, keyid=None))
    forged = replace(plain, headers={**plain.headers, "vendor-signature": claim})

    update = PROTOCOL.read_reply(forged, REQUEST).update
    assert update
    assert update.signature == Signature.unverified(claim)
    build = Build(
        "ios", "1.0", UpdateSettings(url="scope"), NOTHING, "scope", CERTIFICATE
    )
    reasons = will_load(replace(update, assets=[]), build).reasons
    assert [reason.code for reason in reasons if "signature" in reason.detail] == [
        "unknown"
    ]
    assert state_of(forged) == "invalid"


def test_a_signature_header_has_the_key_and_the_algorithm() -> None:
    assert (
        signature_header("YQ==", "main")
        == 'sig="YQ==", keyid="main", alg="rsa-v1_5-sha256"'
    )
    with pytest.raises(ConfigError, match="keyid 'ü' must be printable ASCII"):
        signature_header("YQ==", "ü")
    with pytest.raises(ConfigError, match="must be printable ASCII"):
        signature_header(b"YQ==")  # type: ignore[arg-type]  # the mistake


def test_a_request_with_a_name_that_no_header_can_contain_is_refused() -> None:
    protocol = published_protocol_v1("vendor")

    with pytest.raises(ConfigError, match="keyid 'ü' must be printable ASCII"):
        protocol.request_headers(UpdateRequest("ios", "1.0", keyid="ü"))
    with pytest.raises(ConfigError, match="failed update ID 'ü' must be printable"):
        protocol.request_headers(UpdateRequest("ios", "1.0", failed_update_ids=("ü",)))


def test_a_folded_header_of_a_part_is_read_as_one_line() -> None:
    folded = reply().body.replace(
        b'form-data; name="manifest"', b'form-data;\r\n name="manifest"'
    )

    assert state_of(reply(body=folded)) == "valid"


MANIFEST: Final = json.loads(reply(request=replace(REQUEST, takes_parts=False)).body)


def in_json(manifest: object) -> Reply:
    return Reply(200, {"vendor-protocol-version": "1"}, json.dumps(manifest).encode())


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (reply(status=500), "returned 500"),
        (reply(headers={}), "protocol version None"),
        (reply(body=reply().body[:-30]), "is truncated"),
        (reply(body=b"--part-of-the-update\r\n" * 40), "more than 16 parts"),
        (reply(body=b" " * (9 * 1024 * 1024)), "larger than 8 MB"),
        (in_json([]), "not a JSON object"),
        (in_json({**MANIFEST, "id": "1"}), "id must be a UUID"),
        (in_json({**MANIFEST, "createdAt": "today"}), "ISO 8601"),
        (in_json({**MANIFEST, "createdAt": "9999-12-31T23:00-02:00"}), "ISO 8601"),
        (in_json({**MANIFEST, "assets": {}}), "assets must be of type list"),
        (in_json({**MANIFEST, "assets": [1]}), "an asset must be an object"),
        (
            in_json({**MANIFEST, "launchAsset": {"key": "x"}}),
            "an asset's url must be of type str",
        ),
        (in_json({**MANIFEST, "metadata": []}), "metadata must be of type dict"),
        (
            reply(body=reply(None).body.replace(b"noUpdate", b"someUpdate")),
            "signature of a directive is invalid",
        ),
    ],
)
def test_a_malformed_reply_is_a_typed_error(written: Reply, problem: str) -> None:
    with pytest.raises(UpdateError, match=problem):
        PROTOCOL.read_reply(written, REQUEST, CERTIFICATE)


def test_an_unpublished_directive_is_refused() -> None:
    written = reply(None, replace(REQUEST, keyid=None))

    with pytest.raises(
        UpdateError, match="'selfDestruct' is not in version 1"
    ) as caught:
        PROTOCOL.read_reply(
            replace(
                written,
                body=written.body.replace(b"noUpdateAvailable", b"selfDestruct"),
            ),
            REQUEST,
        )
    assert caught.value.code == "not_specified"


def test_unknown_fields_of_a_manifest_are_kept() -> None:
    update = PROTOCOL.read_reply(in_json({**MANIFEST, "new": [1]}), REQUEST).update

    assert update
    assert update.manifest["new"] == [1]


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
    ],
)
def test_a_malformed_request_is_a_typed_error(
    changes: Mapping[str, str], problem: str
) -> None:
    with pytest.raises(UpdateError, match=problem):
        PROTOCOL.read_request({**PROTOCOL.request_headers(REQUEST), **changes})


def test_headers_above_their_limit_are_refused() -> None:
    long = f'sig, keyid="{"a" * 9000}"'
    with pytest.raises(
        UpdateError, match="a structured field is longer than 8192 characters"
    ):
        PROTOCOL.read_request(
            {**PROTOCOL.request_headers(REQUEST), "vendor-expect-signature": long}
        )

    body = reply().body.replace(
        b"content-disposition", b"x: " + b"a" * 70_000 + b"\r\ncontent-disposition"
    )
    with pytest.raises(
        UpdateError, match="the headers of a part are larger than 64 kB"
    ):
        PROTOCOL.read_reply(reply(body=body), REQUEST, CERTIFICATE)


VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1e308,
    "",
    "\0",
    "é" * 99,
    [],
    {},
    [[]],
    {"type": "noUpdateAvailable"},
    "2026-13-01",
)


def mutated(random_: random.Random, value: Any) -> Any:
    """Return a JSON value with one place changed."""
    if isinstance(value, dict) and value and random_.random() < 0.9:
        key = random_.choice(list(value))
        if random_.random() < 0.1:
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: mutated(random_, value[key])}
    if isinstance(value, list) and value and random_.random() < 0.9:
        index = random_.randrange(len(value))
        return [*value[:index], mutated(random_, value[index]), *value[index + 1 :]]
    return random_.choice(VALUES)


def test_a_thousand_mutated_manifests_raise_typed_errors_only() -> None:
    random_ = random.Random(21)
    refused, good = 0, reply()
    for number in range(1000):
        written = in_json(mutated(random_, MANIFEST))
        if number % 2:  # also the bytes of a reply with parts
            body = bytearray(good.body)
            for _ in range(random_.randrange(1, 9)):
                body[random_.randrange(len(body))] = random_.randrange(256)
            written = replace(
                good,
                body=bytes(body[: random_.randrange(len(body) // 2, len(body) + 1)]),
            )
        try:
            PROTOCOL.read_reply(written, REQUEST, CERTIFICATE)
        except UpdateError:
            refused += 1
    assert 500 < refused < 1000
