"""Events of sessions: what ``lease`` reports, and what a run of pytest reports of sessions.

``Event`` is the union of their types. Each is a frozen dataclass, which holds no connection details.

>>> def show(event: Event) -> None:
...     match event:
...         case Ready(session=session, device=device):
...             print(f"{session.label}: {device} after {session.waited_seconds:.0f} s")
...         case StartFailed(session=session, reason=reason):
...             print(f"{session.label}: {reason}")
...         case _:
...             pass
>>> show(Ready(SessionRef("ios appium", waited_seconds=18.2), "iPhone 15"))
ios appium: iPhone 15 after 18 s

Written to a file, an event is a JSON object:

>>> line = json.dumps(to_plain(Queued(waited_seconds=12.5)))
>>> line
'{"version": 3, "event": "queued", "waited_seconds": 12.5}'
>>> from_plain(json.loads(line))
Queued(waited_seconds=12.5)
"""

from pytest_device.sessions.events import (
    Attached,
    Created,
    CreateUnknown,
    Event,
    EventFormatError,
    Gone,
    Kept,
    KeptWarm,
    Note,
    Queued,
    Ready,
    SessionRef,
    StartFailed,
    StateChanged,
    StopDelayed,
    StopFailed,
    Stopped,
    TakenOver,
    Unused,
    detail_of,
    from_plain,
    is_proof,
    session_id_of,
    to_plain,
)

__all__ = [
    "Attached",
    "CreateUnknown",
    "Created",
    "Event",
    "EventFormatError",
    "Gone",
    "Kept",
    "KeptWarm",
    "Note",
    "Queued",
    "Ready",
    "SessionRef",
    "StartFailed",
    "StateChanged",
    "StopDelayed",
    "StopFailed",
    "Stopped",
    "TakenOver",
    "Unused",
    "detail_of",
    "from_plain",
    "is_proof",
    "session_id_of",
    "to_plain",
]
