"""HTTP status codes after which the same call may succeed later, for whichever server it is.

Standard library only, and little of it, since the reaper loads this module.
"""

from typing import Final

GATEWAY_ERRORS: Final = frozenset({502, 503, 504})
"""Sent by a gateway that does not reach the server behind it."""
SERVER_ERRORS: Final = 500
"""The first of the statuses by which a server says that it failed, not the request."""
_EARLY_OR_LATE: Final = frozenset({408, 425, 429})
"""Request Timeout, Too Early and Too Many Requests are about the moment of a request, not about what it asks for."""


def is_temporary_status(status: int) -> bool:
    """Return whether the same call may succeed later: the timing was wrong, or the server failed.

    >>> [status for status in (200, 400, 401, 404, 408, 429, 500, 503) if is_temporary_status(status)]
    [408, 429, 500, 503]
    """
    return status in _EARLY_OR_LATE or status >= SERVER_ERRORS
