"""Code signing with ``rsa-v1_5-sha256``: certificates and signatures; requires the ``services`` extra."""

import base64
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.secret_registry import SECRETS
from pytest_device.serving import need_extra
from pytest_device.updates.values import CertificateError, UpdateError, in_utc

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import (
        RSAPrivateKey,
        RSAPublicKey,
    )
    from cryptography.x509 import Certificate, ExtendedKeyUsage, Extensions, KeyUsage

__tracebackhide__ = hides_frames

ALGORITHM: Final = "rsa-v1_5-sha256"
MIN_KEY_BITS: Final = 2048
"""Shorter RSA keys can be factored; generated keys have this length."""
_MAX_YEARS: Final = 1000


class CodeSigning(NamedTuple):
    """A private key and its certificate, both in PEM; the key is excluded from ``repr``."""

    private_key: str
    certificate: str

    def __repr__(self) -> str:
        return f"CodeSigning(private_key=…, certificate={self.certificate!r})"


def sign(body: bytes | str, private_key: "str | bytes | RSAPrivateKey") -> str:
    """Return the base64 signature of a body. Raises CertificateError if the key is not an RSA key."""
    key = _key(private_key)
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    signature = key.sign(_bytes(body), PKCS1v15(), SHA256())

    return base64.b64encode(signature).decode("ascii")


def verify(
    body: bytes | str,
    signature: str,
    certificate: "str | bytes | Certificate",
    *,
    now: datetime | None = None,
) -> None:
    """Verify the base64 signature of a body.

    Args:
        body: The signed bytes; a string stands for its UTF-8.
        signature: The signature in base64.
        certificate: The certificate, in PEM or parsed.
        now: The time at which the certificate must be valid (default: the current time).

    Raises:
        UpdateError: The signature is invalid; the code is ``signature_invalid``.
        CertificateError: The certificate must not be used to sign code.
    """
    key = _checked_key(_certificate(certificate), now)
    content = _bytes(body)
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        key.verify(
            base64.b64decode(signature, validate=True), content, PKCS1v15(), SHA256()
        )
    except (InvalidSignature, TypeError, ValueError):
        raise UpdateError(
            "the signature was not made with the certificate's key",
            code="signature_invalid",
        ) from None


def validate_certificate(
    pem: "str | bytes | Certificate",
    private_key: "str | bytes | RSAPrivateKey | None" = None,
    *,
    now: datetime | None = None,
) -> None:
    """Check that a certificate may sign code now, and that it matches a private key if one is given.

    Raises CertificateError with the code ``malformed``, ``not_yet_valid``, ``expired``, ``wrong_usage``,
    ``weak_key`` or ``key_mismatch``.
    """
    certified_key = _checked_key(_certificate(pem), now)
    if private_key is None:
        return

    signing_key = _key(private_key).public_key()
    if signing_key.public_numbers() != certified_key.public_numbers():
        _refuse("key_mismatch", "does not match the private key")


def generate_code_signing(
    common_name: str, years: float, *, now: datetime | None = None
) -> CodeSigning:
    """Generate a key and a self-signed certificate for signing updates in tests.

    Args:
        common_name: The name in the certificate, 1 to 64 characters.
        years: How long the certificate is valid.
        now: The start of its validity (default: the current time).

    Raises:
        ConfigError: The lifetime is invalid.
    """
    need_extra("code signing", "cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    if not 0 < years <= _MAX_YEARS:
        raise ConfigError(
            f"years={years!r} must be greater than 0 and at most {_MAX_YEARS}"
        )

    # The exponent that the library recommends.
    key = rsa.generate_private_key(public_exponent=65537, key_size=MIN_KEY_BITS)
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, common_name)])
    start = in_utc(now or datetime.now(UTC))
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=start,
        not_valid_after=start + timedelta(days=365.25 * years),
    )
    for extension in _usages():
        builder = builder.add_extension(extension, critical=True)
    certificate = builder.sign(key, SHA256()).public_bytes(Encoding.PEM)

    private_key = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    signing = CodeSigning(private_key.decode("ascii"), certificate.decode("ascii"))
    SECRETS.learn(signing.private_key)

    return signing


def _usages() -> "tuple[KeyUsage, ExtendedKeyUsage]":
    from cryptography import x509

    # The other usages are for other kinds of certificates.
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    purpose = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.CODE_SIGNING])

    return usage, purpose


def _bytes(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else body


def _refuse(code: str, problem: str) -> NoReturn:
    raise CertificateError(f"the certificate {problem}", code=code)


def _key(private_key: "str | bytes | RSAPrivateKey") -> "RSAPrivateKey":
    need_extra("code signing", "cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    key: object = private_key
    if isinstance(private_key, str | bytes):
        # Before it is parsed: an error may quote it.
        if isinstance(private_key, str):
            SECRETS.learn(private_key)
        else:
            SECRETS.learn(private_key.decode(errors="replace"))

        try:
            key = _parsed(_bytes(private_key))
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None

    if not isinstance(key, RSAPrivateKey):
        raise CertificateError(
            "the private key must be an unencrypted RSA key in PEM", code="malformed"
        )
    if key.key_size < MIN_KEY_BITS:
        raise CertificateError(
            f"the private key has {key.key_size} bits, must have at least {MIN_KEY_BITS}",
            code="weak_key",
        )

    return key


@lru_cache(maxsize=8)
def _parsed(pem: bytes) -> object:
    # A service signs each reply with the same key, whose check takes much longer than a signature.
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return load_pem_private_key(pem, None)


def _certificate(certificate: "str | bytes | Certificate") -> "Certificate":
    need_extra("code signing", "cryptography")
    from cryptography.x509 import Certificate, load_pem_x509_certificate

    if isinstance(certificate, Certificate):
        return certificate

    try:
        return load_pem_x509_certificate(_bytes(certificate))
    except (TypeError, ValueError):
        _refuse("malformed", "must be an X.509 certificate in PEM")


def _checked_key(certificate: "Certificate", now: datetime | None) -> "RSAPublicKey":
    """Check that a certificate may sign code at a time, and return its public key."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    # The library parses the parts of a certificate when they are read.
    try:
        key = certificate.public_key()
        extensions = certificate.extensions
        if certificate.issuer == certificate.subject:
            certificate.verify_directly_issued_by(certificate)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        _refuse("malformed", "is damaged: its content or its own signature is invalid")

    if not isinstance(key, RSAPublicKey):
        _refuse("malformed", f"must have an RSA key, for {ALGORITHM}")
    if key.key_size < MIN_KEY_BITS:
        _refuse(
            "weak_key",
            f"has a key of {key.key_size} bits, must have at least {MIN_KEY_BITS}",
        )

    time = in_utc(now or datetime.now(UTC))
    if time < certificate.not_valid_before_utc:
        _refuse(
            "not_yet_valid",
            f"is valid from {certificate.not_valid_before_utc:%Y-%m-%d} only",
        )
    if time > certificate.not_valid_after_utc:
        _refuse("expired", f"has expired on {certificate.not_valid_after_utc:%Y-%m-%d}")

    if not _signs_code(extensions):
        _refuse(
            "wrong_usage",
            "must have the key usage digitalSignature and the extended key usage codeSigning",
        )

    return key


def _signs_code(extensions: "Extensions") -> bool:
    from cryptography import x509

    try:
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
        purposes = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return False

    return (
        usage.digital_signature
        and x509.oid.ExtendedKeyUsageOID.CODE_SIGNING in purposes
    )
