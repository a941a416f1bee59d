"""The app's side of the published update protocol, with other tools than the service: a second reading of it."""

import base64
import hashlib
import json
import re
from datetime import datetime
from email import message_from_bytes
from typing import Any, NamedTuple

import httpx
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from pytest_device.updates import Asset, Offer, Signature, Update
from tests.updates.rows import BUILD


class Read(NamedTuple):
    name: str
    content: dict[str, Any]
    body: bytes
    signature: str | None


def read(answer: httpx.Response, vendor: str = "vendor") -> Read | None:
    """Return the part of a reply, None without any."""
    assert answer.headers[f"{vendor}-protocol-version"] == "1"
    if answer.status_code == 204:
        return None
    assert answer.status_code == 200
    kind = answer.headers["content-type"]
    if not kind.startswith("multipart/mixed"):
        assert kind == "application/json"
        signature = answer.headers.get(f"{vendor}-signature")
        return Read("manifest", json.loads(answer.content), answer.content, signature)
    whole = message_from_bytes(
        f"MIME-Version: 1.0\r\nContent-Type: {kind}\r\n\r\n".encode() + answer.content
    )
    assert whole.is_multipart()
    assert not whole.defects
    parts: Any = whole.get_payload()
    (part,) = parts
    name = re.fullmatch(r'form-data; name="(\w+)"', str(part["content-disposition"]))
    assert name
    assert str(part["content-type"]) == "application/json"
    body = part.get_payload(decode=True)
    assert isinstance(body, bytes)
    found = part[f"{vendor}-signature"]
    return Read(name[1], json.loads(body), body, None if found is None else str(found))


def is_signed(part: Read, certificate: str, keyid: str) -> bool:
    """Return whether a part is signed by the key of a certificate; raises what cryptography does if it is wrong."""
    fields = re.fullmatch(
        r'sig="([A-Za-z0-9+/=]+)", keyid="([^"]*)", alg="rsa-v1_5-sha256"',
        part.signature or "",
    )
    key = x509.load_pem_x509_certificate(certificate.encode()).public_key()
    if fields is None or fields[2] != keyid:
        return False
    assert isinstance(key, rsa.RSAPublicKey)
    key.verify(
        base64.b64decode(fields[1]), part.body, padding.PKCS1v15(), hashes.SHA256()
    )
    return True


def offer(answer: httpx.Response, certificate: str, keyid: str) -> Offer:
    """Return what a reply offers to an app of the tests."""
    part = read(answer)
    if part is None or part.content.get("type") == "noUpdateAvailable":
        return Offer()
    if part.name == "directive":
        assert part.content["type"] == "rollBackToEmbedded"
        assert is_signed(part, certificate, keyid)
        time = part.content["parameters"]["commitTime"]
        return Offer(roll_back_at=datetime.fromisoformat(time))
    signature = Signature.missing()
    if part.signature is not None:
        try:
            is_valid = is_signed(part, certificate, keyid)
        except InvalidSignature:
            is_valid = False
        signature = (Signature.valid if is_valid else Signature.invalid)(certificate)
    manifest = part.content
    files = [manifest["launchAsset"], *manifest["assets"]]
    return Offer(
        Update(
            manifest["id"],
            manifest["runtimeVersion"],
            "ios",
            manifest["createdAt"],
            BUILD.scope,
            [Asset(one["key"], one["hash"], one["hash"], True) for one in files],
            signature,
            manifest,
        )
    )


def hash_of(content: bytes) -> str:
    """Return what the manifest states of a file."""
    return (
        base64.b64encode(hashlib.sha256(content).digest())
        .decode()
        .translate(str.maketrans("+/", "-_", "="))
    )
