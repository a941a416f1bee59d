"""The client for the run's own local service; adds details that only the service's session pages have."""

from contextlib import suppress
from typing import Any
from uuid import UUID

import httpx

from pytest_device.errors import ConfigError
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.models import Session
from pytest_device.spec import Status


class LocalClient(DeviceClient):
    """Adds the device's name, and the reason why a session ended."""

    def get(self, session_id: UUID | str) -> Session:
        """Return the session; raises ConfigError if its request made it fail."""
        session, facts = super().get(session_id), dict[str, Any]()
        if session.status != Status.NEW:
            with suppress(httpx.HTTPError, ValueError):
                facts = self._http.get(f"/sessions/{session.id}/facts").json().get("data", {})
        if facts.get("failedByRequest"):
            raise ConfigError(str(facts["reason"]))
        return session.model_copy(update={"reason": facts.get("reason"), "deviceName": facts.get("device")})
