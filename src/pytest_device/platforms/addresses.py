"""The addresses of connections, in one form."""

import ipaddress

from pytest_device.platforms.system import Address

Ends = tuple[tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int], ...]
"""The client's address and port, then the server's."""


def ends_of(client: Address, server: Address) -> Ends:
    """Return the two ends of a connection."""
    return tuple(
        (canonical(address[0]), int(address[1])) for address in (client, server)
    )


def canonical(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address, in IPv4 if an IPv6 socket has it in its mapped form.

    >>> canonical("::ffff:127.0.0.1")
    IPv4Address('127.0.0.1')
    """
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        return parsed.ipv4_mapped

    return parsed
