"""What boots have in common, and how long one took."""

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_device.sessions.models import Session  # loads pydantic, as the next one does
    from pytest_device.sessions.request import SessionRequest

_DIGEST_LENGTH = 12


def boot_key(request: "SessionRequest") -> str:
    """Return what is equal for requests whose devices take equally long to be ready.

    It begins with platform and type; a digest stands for whatever else matters, without name, limits, addresses or
    anything that may be a secret.
    """
    label = f"{request.platform} {request.type}"
    rest = {
        "device": request.device_identifier,
        "package": request.package_version,
        "sdk": request.sdk_version,
        "source": _source(request),
    }
    given = {name: value for name, value in rest.items() if value is not None}
    if not given:
        return label
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()
    return f"{label} {digest[:_DIGEST_LENGTH]}"


def _source(request: "SessionRequest") -> str | None:
    """Return what kind of app has to be installed: which one it is changes from build to build."""
    if request.build_id is not None:
        return "build"
    if request.application_archive_url is not None:
        return "archive"
    return "vendor" if request.vendor_go else None


def boot_seconds(session: "Session") -> float | None:
    """Return how long the session took to be ready by the service's own times, None where it gave none that can be."""
    if session.started_at is None:
        return None
    seconds = (session.started_at - session.created_at).total_seconds()
    return seconds if seconds >= 0 else None
