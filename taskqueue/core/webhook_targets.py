"""The URLs to which webhooks may be sent, as far as the URL shows. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Self
from urllib.parse import urlsplit

from taskqueue.core.addresses import Address, Network, class_of, embedded_in
from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why

LONGEST_URL = 2000
PORTS = frozenset({443, 8443})
DEFAULT_PORTS = {"https": 443, "http": 80}
PRINTABLE = re.compile(r"[!-~]+")
LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
NAME = re.compile(rf"(?=.{{1,253}}$){LABEL}(\.{LABEL})*")
# As browsers and libc read addresses: in decimal, octal or hexadecimal, with one to four parts.
NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)")
HOST_PATTERN = re.compile(r"([a-z0-9_.*?-]+)(:([0-9]{1,5}))?")


class InvalidURL(ValueError):
    """A URL that no webhook is sent to; the message says why."""


@dataclass(frozen=True)
class Allowed:
    """The hosts and networks that the setting `WEBHOOK_ALLOW` names."""

    networks: tuple[Network, ...] = ()
    # Patterns of names, each with the only port to which it applies, if it has one.
    hosts: tuple[tuple[str, int | None], ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Read the setting. Raises ValueError with the entry that is wrong."""
        networks: list[Network] = []
        hosts: list[tuple[str, int | None]] = []
        for entry in entries:
            try:
                networks.append(ip_network(entry))
                continue
            except ValueError:
                pass
            found = HOST_PATTERN.fullmatch(entry)
            if found is None or "/" in entry or NUMBER.fullmatch(entry.rpartition(".")[2]):
                raise ValueError(entry)
            hosts.append((found[1], int(found[3]) if found[3] else None))
        return cls(tuple(networks), tuple(hosts))

    def names(self, host: str, port: int) -> bool:
        """Return whether the name of a host is allowed."""
        return any(
            fnmatchcase(host, pattern) and only in (None, port) for pattern, only in self.hosts
        )

    def holds(self, address: Address) -> bool:
        """Return whether an address is in an allowed network; an IPv4 one also if mapped."""
        candidates = [address, *embedded_in(address)]
        return any(each in network for each in candidates for network in self.networks)


NOTHING_ALLOWED = Allowed()


@dataclass(frozen=True, kw_only=True)
class Target:
    """A URL in its parts."""

    scheme: str
    host: str
    port: int
    # The path with the query.
    path: str
    # The address, if the URL contains one instead of a host.
    literal: Address | None = None
    # Whether `WEBHOOK_ALLOW` names the host.
    is_allowed: bool = False

    @property
    def origin(self) -> str:
        """The part of the URL that is not secret: paths and queries often contain tokens."""
        shown = f"[{self.host}]" if isinstance(self.literal, IPv6Address) else self.host
        is_usual = self.port == DEFAULT_PORTS[self.scheme]
        return f"{self.scheme}://{shown}" if is_usual else f"{self.scheme}://{shown}:{self.port}"

    @property
    def authority(self) -> str:
        """The value of the header `Host`."""
        return self.origin.partition("//")[2]

    @property
    def is_ordinary(self) -> bool:
        """Whether it needs no permission by `WEBHOOK_ALLOW`: https, on a usual port."""
        return self.scheme == "https" and self.port in PORTS

    def refusal(self, address: Address, allowed: Allowed) -> str:
        """Return why this address of the host must not be called; empty if it may be."""
        found = class_of(address)
        if found == "metadata":
            return _("The host has the address of a cloud's metadata service.")
        if self.is_allowed or allowed.holds(address):
            return ""
        if found:
            return _("The host has an address that is not public ({found}).", found=found)
        return "" if self.is_ordinary else _not_ordinary(self)


def target_of(url: str, allowed: Allowed = NOTHING_ALLOWED) -> Target:
    """Return the parts of a URL to which webhooks may be sent. Raises `InvalidURL`.

    `Target.refusal` checks the addresses before each connection.
    """
    if not isinstance(url, str) or not PRINTABLE.fullmatch(url) or "\\" in url:
        raise InvalidURL(_("A URL has printable ASCII characters only; write others encoded."))
    if len(url) > LONGEST_URL:
        raise InvalidURL(_("A URL has at most {longest_url} characters.", longest_url=LONGEST_URL))
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidURL(_("This is no URL: {error}.", error=why(error))) from None
    if parts.scheme not in DEFAULT_PORTS:
        raise InvalidURL(_("The URL must begin with https://."))
    if "@" in parts.netloc:
        raise InvalidURL(_("The URL must not hold a user name or a password."))
    if parts.fragment or url.endswith("#"):
        raise InvalidURL(_("The URL must have no part behind a #."))
    host, literal = _host(parts.hostname or "", is_bracketed="[" in parts.netloc)
    port = DEFAULT_PORTS[parts.scheme] if port is None else port
    path = parts.path or "/"
    target = Target(
        scheme=parts.scheme,
        host=host,
        port=port,
        path=f"{path}?{parts.query}" if parts.query else path,
        literal=literal,
        is_allowed=allowed.names(host, port),
    )
    if literal is not None:
        if refusal := target.refusal(literal, allowed):
            raise InvalidURL(refusal)
    elif not (target.is_ordinary or target.is_allowed or allowed.networks):
        raise InvalidURL(_not_ordinary(target))
    return target


def _not_ordinary(target: Target) -> str:
    if target.scheme != "https":
        return _("The URL must begin with https://. The setting WEBHOOK_ALLOW names exceptions.")
    return _(
        "The port must be 443 or 8443, not {port}. The setting WEBHOOK_ALLOW names exceptions.",
        port=target.port,
    )


def _host(host: str, *, is_bracketed: bool) -> tuple[str, Address | None]:
    """Return the host, and its address if it is one. Raises `InvalidURL`.

    An address in an unusual notation is refused, because programs read these differently.
    """
    if is_bracketed:
        try:
            return host, IPv6Address(host if "%" not in host else "")
        except ValueError:
            raise InvalidURL(_("The URL holds no valid IPv6 address.")) from None
    if NUMBER.fullmatch(host.rpartition(".")[2]):
        try:
            return host, ip_address(host)
        except ValueError:
            raise InvalidURL(_(
                "Write an IPv4 address as four decimal numbers, such as 192.0.2.1."
            )) from None  # fmt: skip
    if not NAME.fullmatch(host):
        raise InvalidURL(_("The URL holds no valid host name; write others in Punycode (xn--…)."))
    return host, None
