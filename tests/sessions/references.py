"""What events refer to."""

from pytest_device.events import Event, Note, Queued, SessionRef


def ref_of(event: Event) -> SessionRef:
    """Return the session of an event that has one."""
    assert not isinstance(event, Note | Queued)
    return event.session
