"""Adapter for version 1 of the update protocol, from its published specification.

Header names contain the vendor word. Structured fields follow RFC 8941.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ConfigError, hides_frames
from pytest_device.serving import need_extra
from pytest_device.spec import VENDOR
from pytest_device.updates.multipart import (
    MULTIPART,
    Part,
    decode_multipart,
    encode_multipart,
    refuse,
)
from pytest_device.updates.protocol import (
    Answer,
    Reply,
    ServedAsset,
    ServedRollBack,
    ServedUpdate,
    Sign,
    UpdateRequest,
)
from pytest_device.updates.signing import ALGORITHM, verify
from pytest_device.updates.values import (
    Asset,
    CertificateError,
    Offer,
    Signature,
    SignatureState,
    Update,
    UpdateError,
    in_utc,
)

__tracebackhide__ = hides_frames

MAX_BYTES: Final = 8 * 1024 * 1024
_MAX_FIELD: Final = 8 * 1024
"""Maximum length of a structured field: eight times the longest signature, as the time of parsing grows faster."""
_MAX_ERROR: Final = 1024
"""Maximum length of the error in a request: servers limit the size of headers."""
_JSON: Final = "application/json"
_DEFAULT_KEY: Final = "root"
_OK: Final = 200
_NO_CONTENT: Final = 204
_NOT_ACCEPTABLE: Final = 406


def signature_header(sig: str, keyid: str = _DEFAULT_KEY) -> str:
    """Return the header of a base64 signature. Raises ConfigError for texts that are not ASCII."""
    _check_string("sig", sig)

    return _serialized(keyid, sig=sig)


def _check_string(name: str, text: object) -> None:
    """Raise ConfigError unless a text can be a string of a structured field (RFC 8941 section 3.3.3)."""
    if not (isinstance(text, str) and text.isascii() and text.isprintable()):
        raise ConfigError(f"{name} {text!r} must be printable ASCII")


class PublishedProtocolV1:
    """The adapter; ``vendor`` is the vendor's profile, or only its word, for the names of headers."""

    def __init__(self, vendor: VendorProfile | str = VENDOR) -> None:
        self._profile = profile_of(vendor)

    def request_headers(self, request: UpdateRequest) -> dict[str, str]:
        """Return the request headers that an app sends."""
        values = {
            "protocol-version": "1",
            "platform": request.platform,
            "runtime-version": request.runtime_version,
            "channel-name": request.channel,
            "current-update-id": request.current_update_id,
            "embedded-update-id": request.embedded_update_id,
            "expect-signature": request.keyid and _serialized(request.keyid),
            # A header has one line; messages of crashes have several.
            "fatal-error": " ".join(request.fatal_error.split())[:_MAX_ERROR],
            "recent-failed-update-ids": _listed(request.failed_update_ids),
        }
        headers = {
            "accept": f"{MULTIPART}, {_JSON};q=0.9" if request.takes_parts else _JSON
        }
        for name, value in values.items():
            if value:
                headers[self._name(name)] = value

        return headers

    def read_request(self, headers: Mapping[str, str]) -> UpdateRequest:
        """Parse an app's request headers."""
        version = self._required(headers, "protocol-version")
        if version != "1":
            refuse(f"{self._name('protocol-version')} is {version!r}, must be 1")

        platform = self._required(headers, "platform")
        if platform not in ("ios", "android"):
            refuse(f"{self._name('platform')} is {platform!r}, must be ios or android")

        expected_signature = headers.get(self._name("expect-signature"))
        keyid = None
        if expected_signature is not None:
            keyid = _text(_dictionary(expected_signature), "keyid", _DEFAULT_KEY)

        fatal_error = headers.get(self._name("fatal-error"), "")
        failed_updates = headers.get(self._name("recent-failed-update-ids"), "")

        return UpdateRequest(
            platform,
            self._required(headers, "runtime-version"),
            headers.get(self._name("channel-name")),
            headers.get(self._name("current-update-id")),
            headers.get(self._name("embedded-update-id")),
            keyid,
            takes_parts=_takes_parts(headers.get("accept", "*/*")),
            fatal_error=_in_utf8(fatal_error),
            failed_update_ids=_texts(failed_updates),
        )

    def write_reply(self, answer: Answer, request: UpdateRequest, sign: Sign) -> Reply:
        """Encode the service's reply; the status is 406 for a rollback if the app doesn't accept multipart."""
        headers = {
            self._name("protocol-version"): "1",
            self._name("sfv-version"): "0",
            "cache-control": "private, max-age=0",
        }
        if not request.takes_parts:
            # Both are directives, which have no form outside of a multipart reply.
            if answer is None:
                return Reply(_NO_CONTENT, headers, b"")
            if isinstance(answer, ServedRollBack):
                return Reply(_NOT_ACCEPTABLE, headers, b"")

        name, content = _content(answer)
        body = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
        part_headers = {"content-type": _JSON}
        signature = sign(body) if request.keyid else None
        if signature and request.keyid:
            header = signature_header(signature, request.keyid)
            part_headers[self._name("signature")] = header

        if not request.takes_parts:
            return Reply(_OK, {**headers, **part_headers}, body)

        content_type, whole_body = encode_multipart(Part(name, part_headers, body))

        return Reply(_OK, {**headers, "content-type": content_type}, whole_body)

    def read_reply(
        self, reply: Reply, request: UpdateRequest, certificate: str | None = None
    ) -> Offer:
        """Parse the service's reply.

        An update has the state of its signature, and the caller decides; a directive has no field for one, so that it
        is refused if a certificate is given and its signature is not valid.
        """
        if reply.status == _NO_CONTENT or (reply.status == _OK and not reply.body):
            return Offer()

        if reply.status != _OK:
            refuse(f"the update service returned {reply.status} (expected 200)")
        if len(reply.body) > MAX_BYTES:
            raise UpdateError(
                f"the reply is larger than {MAX_BYTES // 1024 // 1024} MB",
                code="too_large",
            )
        version = reply.headers.get(self._name("protocol-version"))
        if version not in ("0", "1"):
            refuse(f"the reply has the protocol version {version!r}, must be 1")

        for part in decode_multipart(reply):
            signature = self._signature(part, request, certificate)
            if part.name == "manifest":
                return Offer(_update(_object(part.body), request, signature))
            if part.name == "directive":
                return _directive(_object(part.body), signature, certificate)

        return Offer()

    def _signature(
        self, part: Part, request: UpdateRequest, certificate: str | None
    ) -> Signature:
        header = part.headers.get(self._name("signature"))
        if header is None:
            return Signature.missing()
        if certificate is None:
            return Signature.unverified(header)

        try:
            fields = _dictionary(header)
            if _text(fields, "keyid", _DEFAULT_KEY) != (request.keyid or _DEFAULT_KEY):
                return Signature.invalid(certificate)
            if _text(fields, "alg", ALGORITHM) != ALGORITHM:
                return Signature.invalid(certificate)

            verify(part.body, _text(fields, "sig", ""), certificate)
        except CertificateError:
            # A mistake of the test, not a property of the reply.
            raise
        except UpdateError:
            return Signature.invalid(certificate)

        return Signature.valid(certificate)

    def _name(self, name: str) -> str:
        return self._profile.header(name)

    def _required(self, headers: Mapping[str, str], name: str) -> str:
        value = headers.get(self._name(name))
        if not value:
            refuse(f"the header {self._name(name)} is missing")

        return value


def published_protocol_v1(vendor: VendorProfile | str = VENDOR) -> PublishedProtocolV1:
    """Return the adapter; ``vendor`` is the vendor's profile, or only its word, for the names of headers."""
    return PublishedProtocolV1(vendor)


def _takes_parts(accept: str) -> bool:
    """Return whether an ``Accept`` header includes multipart replies; weights are ignored."""
    for media_range in accept.split(","):
        media_type, _, _ = media_range.partition(";")
        if media_type.strip().lower() in {MULTIPART, "multipart/*", "*/*"}:
            return True

    return False


def _serialized(keyid: str, *, sig: str | bool = True) -> str:
    """Return a structured field: a signature or, with True, the expectation of one. Raises ConfigError."""
    _check_string("keyid", keyid)
    need_extra("the update protocol", "http_sf")
    import http_sf

    return http_sf.ser({"sig": sig, "keyid": keyid, "alg": ALGORITHM})


def _dictionary(value: str) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", _parsed(value, "dictionary"))


def _parsed(value: str, kind: str) -> object:
    """Parse a structured field of a kind."""
    if len(value) > _MAX_FIELD:
        refuse(f"a structured field is longer than {_MAX_FIELD} characters")

    need_extra("the update protocol", "http_sf")
    import http_sf

    try:
        return http_sf.parse(value.encode(), tltype=kind)
    except (ValueError, http_sf.StructuredFieldError):
        refuse("a structured field is malformed")


def _in_utf8(value: str) -> str:
    """Return the text of a header, which servers read as Latin-1 and apps may write as UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _listed(texts: Sequence[str]) -> str:
    """Return a list of strings as a structured field; empty for none. Raises ConfigError."""
    if not texts:
        return ""
    for text in texts:
        _check_string("failed update ID", text)

    need_extra("the update protocol", "http_sf")
    import http_sf

    return http_sf.ser([(text, {}) for text in texts])


def _texts(value: str) -> tuple[str, ...]:
    """Return the strings in a structured field that is a list of them."""
    if not value:
        return ()

    items = cast("list[Any]", _parsed(value, "list"))
    texts = tuple(text for text, _parameters in items)
    if not all(isinstance(text, str) for text in texts):
        refuse("the items of a structured field must be strings")

    return texts


def _text(fields: Mapping[str, Any], name: str, default: str) -> str:
    if name not in fields:
        return default

    value, _parameters = fields[name]
    if not isinstance(value, str):
        refuse(f"{name} in a structured field must be a string")

    return value


def _content(answer: Answer) -> tuple[str, dict[str, object]]:
    """Return the name of the part for an answer, and its JSON object."""
    match answer:
        case None:
            return "directive", {"type": "noUpdateAvailable"}
        case ServedRollBack(at):
            return "directive", {
                "type": "rollBackToEmbedded",
                "parameters": {"commitTime": _stamp(at)},
            }
        case ServedUpdate():
            return "manifest", {
                "id": answer.id,
                "createdAt": _stamp(answer.created_at),
                "runtimeVersion": answer.runtime_version,
                "launchAsset": _asset_object(answer.launch_asset),
                "assets": [_asset_object(asset) for asset in answer.assets],
                "metadata": dict(answer.metadata),
                "extra": dict(answer.extra),
            }


def _stamp(time: datetime) -> str:
    text = in_utc(time).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _asset_object(asset: ServedAsset) -> dict[str, str]:
    fields = {
        "hash": asset.hash,
        "key": asset.key,
        "contentType": asset.content_type,
        "url": asset.url,
    }
    if asset.extension:
        fields["fileExtension"] = f".{asset.extension}"

    return fields


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        value = None

    if not isinstance(value, dict):
        refuse("a part is not a JSON object")

    return cast("Mapping[str, Any]", value)


def _field(
    fields: Mapping[str, Any], name: str, kind: type[Any], *, where: str = ""
) -> Any:
    value = fields.get(name)
    if not isinstance(value, kind):
        refuse(f"{where}{name} must be of type {kind.__name__}")

    return value


def _update(
    manifest: Mapping[str, Any], request: UpdateRequest, signature: Signature
) -> Update:
    identifier = _field(manifest, "id", str)
    try:
        canonical = str(uuid.UUID(identifier))
    except ValueError:
        refuse("id must be a UUID")

    for name in ("metadata", "extra"):
        if name in manifest:
            _field(manifest, name, dict)

    files = [_field(manifest, "launchAsset", dict), *_field(manifest, "assets", list)]

    return Update(
        canonical,
        _field(manifest, "runtimeVersion", str),
        request.platform,
        _date(_field(manifest, "createdAt", str)),
        request.scope,
        tuple(_asset(file) for file in files),
        signature,
        manifest,
    )


def _asset(fields: object) -> Asset:
    if not isinstance(fields, dict):
        refuse("an asset must be an object")

    asset = cast("Mapping[str, Any]", fields)
    for name in ("key", "url", "contentType"):
        _field(asset, name, str, where="an asset's ")
    if asset.get("hash") is not None:
        _field(asset, "hash", str, where="an asset's ")

    return Asset(asset["key"], asset.get("hash"))


def _directive(
    fields: Mapping[str, Any], signature: Signature, certificate: str | None
) -> Offer:
    state = signature.state
    if certificate is not None and state is not SignatureState.VALID:
        raise UpdateError(
            f"the signature of a directive is {state}", code=f"signature_{state}"
        )

    kind = _field(fields, "type", str)
    if kind == "noUpdateAvailable":
        return Offer()
    if kind != "rollBackToEmbedded":
        raise UpdateError(
            f"the directive {kind!r} is not in version 1 of the protocol",
            code="not_specified",
        )

    parameters = _field(fields, "parameters", dict)

    return Offer(roll_back_at=_date(_field(parameters, "commitTime", str)))


def _date(text: str) -> datetime:
    try:
        return in_utc(text)
    except ConfigError:
        refuse("a time must be an ISO 8601 date")
