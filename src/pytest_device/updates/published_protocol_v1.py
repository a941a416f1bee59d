"""The service's side of version 1 of the update protocol, from its published specification.

Header names contain the vendor word. Structured fields follow RFC 8941.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NoReturn, cast

from pytest_device.app.vendor import VendorProfile
from pytest_device.errors import ConfigError, hides_frames
from pytest_device.serving import need_extra
from pytest_device.updates.protocol import (
    Answer,
    Reply,
    ServedAsset,
    ServedRollBack,
    ServedUpdate,
    Sign,
    UpdateRequest,
)
from pytest_device.updates.signing import ALGORITHM
from pytest_device.updates.values import UpdateError, in_utc

__tracebackhide__ = hides_frames

_MAX_FIELD: Final = 8 * 1024
"""Maximum length of a structured field: eight times the longest signature, as the time of parsing grows faster."""
_JSON: Final = "application/json"
_MULTIPART: Final = "multipart/mixed"
_BOUNDARY: Final = "part-of-the-update"
_DEFAULT_KEY: Final = "root"
_OK: Final = 200
_NO_CONTENT: Final = 204
_NOT_ACCEPTABLE: Final = 406


def signature_header(sig: str, keyid: str = _DEFAULT_KEY) -> str:
    """Return the header of a base64 signature. Raises ConfigError for texts that are not printable ASCII."""
    for name, text in (("sig", sig), ("keyid", keyid)):
        # A string of a structured field (RFC 8941 section 3.3.3).
        if not (text.isascii() and text.isprintable()):
            raise ConfigError(f"{name} {text!r} must be printable ASCII")

    need_extra("the update protocol", "http_sf")
    import http_sf

    return http_sf.ser({"sig": sig, "keyid": keyid, "alg": ALGORITHM})


class PublishedProtocolV1:
    """The service's side of the protocol; header names come from the vendor's profile."""

    def __init__(self, vendor: VendorProfile) -> None:
        self._profile = vendor

    def read_request(self, headers: Mapping[str, str]) -> UpdateRequest:
        """Parse an app's request headers, whose names are lowercase. Raises UpdateError with the code ``malformed``."""
        version = self._required(headers, "protocol-version")
        if version != "1":
            _refuse(f"{self._name('protocol-version')} is {version!r}, must be 1")

        platform = self._required(headers, "platform")
        if platform not in ("ios", "android"):
            _refuse(f"{self._name('platform')} is {platform!r}, must be ios or android")

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

        content_type = f"{_MULTIPART}; boundary={_BOUNDARY}"

        return Reply(
            _OK,
            {**headers, "content-type": content_type},
            _part(name, part_headers, body),
        )

    def _name(self, name: str) -> str:
        return self._profile.header(name)

    def _required(self, headers: Mapping[str, str], name: str) -> str:
        value = headers.get(self._name(name))
        if not value:
            _refuse(f"the header {self._name(name)} is missing")

        return value


def _refuse(problem: str) -> NoReturn:
    """Raise the error of a request that violates the protocol."""
    raise UpdateError(problem, code="malformed")


def _part(name: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """Return a multipart body of one part, byte for byte, since signatures cover bytes."""
    headers = {"content-disposition": f'form-data; name="{name}"', **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    before = f"--{_BOUNDARY}\r\n{head}\r\n".encode()

    return before + body + f"\r\n--{_BOUNDARY}--\r\n".encode()


def _takes_parts(accept: str) -> bool:
    """Return whether an ``Accept`` header includes multipart replies; weights are ignored."""
    for media_range in accept.split(","):
        media_type, _, _ = media_range.partition(";")
        if media_type.strip().lower() in {_MULTIPART, "multipart/*", "*/*"}:
            return True

    return False


def _dictionary(value: str) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", _parsed(value, "dictionary"))


def _parsed(value: str, kind: str) -> object:
    """Parse a structured field of a kind."""
    if len(value) > _MAX_FIELD:
        _refuse(f"a structured field is longer than {_MAX_FIELD} characters")

    need_extra("the update protocol", "http_sf")
    import http_sf

    try:
        return http_sf.parse(value.encode(), tltype=kind)
    except (ValueError, http_sf.StructuredFieldError):
        _refuse("a structured field is malformed")


def _in_utf8(value: str) -> str:
    """Return the text of a header, which servers read as Latin-1 and apps may write as UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _texts(value: str) -> tuple[str, ...]:
    """Return the strings in a structured field that is a list of them."""
    if not value:
        return ()

    items = cast("list[Any]", _parsed(value, "list"))
    texts = tuple(text for text, _parameters in items)
    if not all(isinstance(text, str) for text in texts):
        _refuse("the items of a structured field must be strings")

    return texts


def _text(fields: Mapping[str, Any], name: str, default: str) -> str:
    if name not in fields:
        return default

    value, _parameters = fields[name]
    if not isinstance(value, str):
        _refuse(f"{name} in a structured field must be a string")

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
