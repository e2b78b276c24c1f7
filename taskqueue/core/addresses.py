"""Addresses of the internet, and which of them are not public. Standard library only.

Ranges are written out if versions of Python disagree on whether they are global.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Where clouds answer their guests, with passwords among other things. 168.63.129.16 is a global
# address: only this list refuses it.
METADATA = tuple(
    ip_network(each)
    for each in (
        "169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16",
        "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
    )
)  # fmt: skip
# By their class, the first that holds an address tells it.
CLASSES: tuple[tuple[str, tuple[Network, ...]], ...] = tuple(
    (name, tuple(map(ip_network, ranges.split())))
    for name, ranges in (
        ("unspecified", "0.0.0.0/8 ::/128"),
        ("loopback", "127.0.0.0/8 ::1/128"),
        ("link-local", "169.254.0.0/16 fe80::/10"),
        (
            "private",
            "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fec0::/10 "
            "64:ff9b:1::/48",
        ),
        ("multicast", "224.0.0.0/4 ff00::/8"),
        (
            "reserved",
            "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 "
            "203.0.113.0/24 240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20",
        ),
    )
)
# All that is given to hosts of the internet; nothing else of IPv6 is public.
GLOBAL_UNICAST = IPv6Network("2000::/3")
COMPATIBLE, NAT64 = IPv6Network("::/96"), IPv6Network("64:ff9b::/96")
# In the upper half of the interface's part of an address: ISATAP (RFC 5214).
ISATAP = (0x00005EFE, 0x02005EFE)
LOW = 0xFFFFFFFF


def address_of(text: str) -> Address:
    """Return the address that a resolver gave, without its zone. Raises ValueError."""
    return ip_address(text.partition("%")[0])


def embedded_in(address: Address) -> list[IPv4Address]:
    """Return the IPv4 addresses to which an IPv6 address leads: mapped, NAT64, tunnels."""
    if isinstance(address, IPv4Address):
        return []
    number = int(address)
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in NAT64 or (address in COMPATIBLE and number > 1):
        return [IPv4Address(number & LOW)]
    if address.sixtofour is not None:
        return [address.sixtofour]
    if address.teredo is not None:
        return list(address.teredo)
    if number >> 32 & LOW in ISATAP:
        return [IPv4Address(number & LOW)]
    return []


def class_of(address: Address) -> str:
    """Return the class of an address that is not public, such as `private`; empty: public.

    An address that stands for others is what the first of these is that is not public.
    """
    inner = embedded_in(address)
    if any(each in network for each in (address, *inner) for network in METADATA):
        return "metadata"
    if inner:
        return next(filter(None, map(class_of, inner)), "")
    found = next(_classes(address), "")
    if found:
        return found
    if isinstance(address, IPv6Address):
        return "" if address in GLOBAL_UNICAST and address.is_global else "reserved"
    return "" if address.is_global else "reserved"


def _classes(address: Address) -> Iterator[str]:
    for name, networks in CLASSES:
        if any(address in network for network in networks):
            yield name
