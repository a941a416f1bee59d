"""Code signing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from pytest_device import ConfigError
from pytest_device.updates import (
    CodeSigning,
    generate_code_signing,
    sign,
    validate_certificate,
    verify,
)
from pytest_device.updates.values import CertificateError, UpdateError
from tests.updates.rows import cases, reference_signing

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ERRORS = {
    "certificate_expired": "expired",
    "certificate_without_code_signing_usage": "wrong_usage",
}


@pytest.fixture(scope="module")
def signing() -> CodeSigning:
    return generate_code_signing("Tests", 2, now=NOW)


@pytest.mark.parametrize("row", cases("sign"))
def test_a_signature_matches_the_reference_case_byte_by_byte(row: Any) -> None:
    given = row["input"]

    for message, expected in zip(
        given["messages"], row["output"]["signatures_base64"], strict=True
    ):
        assert sign(message, given["private_key_pem"]) == expected
        assert sign(message.encode(), given["private_key_pem"].encode()) == expected
        verify(message.encode(), expected, given["certificate_pem"], now=NOW)


@pytest.mark.parametrize("row", cases("validate_certificate"))
def test_a_certificate_is_valid_as_in_the_reference_case(row: Any) -> None:
    given = (row["input"]["certificate_pem"], row["input"]["key_pem"])
    now = datetime(2026, 12, 1, tzinfo=UTC)
    if "error" not in row:
        validate_certificate(*given, now=now)
        return
    with pytest.raises(CertificateError) as caught:
        validate_certificate(*given, now=now)
    assert caught.value.code == ERRORS[row["name"]]


def test_a_generated_certificate_is_valid_for_its_period(signing: CodeSigning) -> None:
    key, certificate = signing
    validate_certificate(certificate, key, now=NOW)
    verify(b"body", sign(b"body", key), certificate, now=NOW + timedelta(days=729))

    for now, code in (
        (NOW - timedelta(seconds=1), "not_yet_valid"),
        (NOW + timedelta(days=731), "expired"),
    ):
        with pytest.raises(CertificateError) as caught:
            validate_certificate(certificate, key, now=now)
        assert caught.value.code == code
        with pytest.raises(CertificateError):
            verify(b"body", sign(b"body", key), certificate, now=now)
    assert "PRIVATE KEY" not in repr(signing)
    assert "PRIVATE KEY" in key


def test_a_certificate_of_another_key_is_refused(signing: CodeSigning) -> None:
    with pytest.raises(
        CertificateError, match="does not match the private key"
    ) as caught:
        validate_certificate(
            signing.certificate, reference_signing().private_key, now=NOW
        )
    assert caught.value.code == "key_mismatch"


@pytest.mark.parametrize("change", ["body", "key", "cut", "empty"])
def test_a_wrong_signature_is_refused(change: str, signing: CodeSigning) -> None:
    signature = sign(
        b"body",
        reference_signing().private_key if change == "key" else signing.private_key,
    )
    wrong = {
        "cut": signature[:-8],
        "empty": "",
    }.get(change, signature)
    body = b"Body" if change == "body" else b"body"

    with pytest.raises(UpdateError) as caught:
        verify(body, wrong, signing.certificate, now=NOW)
    assert caught.value.code == "signature_invalid"


def damaged(pem: str) -> str:
    lines = pem.splitlines()
    lines[-3] = lines[-3][::-1]
    return "\n".join(lines)


def of_another_algorithm() -> tuple[str, str]:
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")]),
    )
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), 1, NOW, NOW + timedelta(days=9)
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode(), pem.decode()


def test_a_short_key_neither_signs_nor_verifies() -> None:
    key, name = (
        rsa.generate_private_key(65537, 1024),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")]),
    )
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), 1, NOW, NOW + timedelta(days=9)
    )
    certificate = builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    for use in (
        lambda: validate_certificate(certificate, now=NOW),
        lambda: verify(b"", "", certificate, now=NOW),
        lambda: sign(b"", pem),
    ):
        with pytest.raises(
            CertificateError, match="1024 bits, must have at least 2048"
        ) as caught:
            use()
        assert caught.value.code == "weak_key"


def test_anything_but_a_certificate_or_key_is_malformed(signing: CodeSigning) -> None:
    other_certificate, other_key = of_another_algorithm()
    bad = (
        "",
        "text",
        signing.private_key,
        damaged(signing.certificate),
        other_certificate,
    )
    for certificate in bad:
        with pytest.raises(CertificateError) as caught:
            validate_certificate(certificate, now=NOW)
        assert caught.value.code == "malformed"
    for key in ("", "text", signing.certificate, other_key):
        with pytest.raises(CertificateError) as caught:
            sign(b"", key)
        assert caught.value.code == "malformed"


@pytest.mark.parametrize(
    "now",
    [datetime(2026, 6, 2), "2026-06-02", "2026-06-02T00:00:00Z"],  # noqa: DTZ001  # as some write it
)
def test_the_time_of_a_check_has_a_zone_or_counts_as_utc(
    now: Any, signing: CodeSigning
) -> None:
    validate_certificate(signing.certificate, signing.private_key, now=now)
    with pytest.raises(
        ConfigError, match="'tomorrow' must be a datetime or an ISO 8601 string"
    ):
        validate_certificate(signing.certificate, now="tomorrow")  # type: ignore[arg-type]


@pytest.mark.parametrize("years", [0, -1, 1001, float("nan")])
def test_an_impossible_lifetime_is_refused(years: float) -> None:
    with pytest.raises(ConfigError, match="years="):
        generate_code_signing("x", years)
