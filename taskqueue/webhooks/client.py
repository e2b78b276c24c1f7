"""The HTTP client of webhooks, which cannot be made to call hosts that are not public.

The name is resolved once, every address is checked, and the socket is connected to a checked
address: there is no second lookup, which could return another one. The client follows no redirects,
uses neither proxy nor cookies, and limits how long it waits and how much it reads.
"""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any

from taskqueue.core.addresses import Address, address_of
from taskqueue.core.webhook_targets import Allowed, InvalidURL, Target, target_of

CONNECT_SECONDS = 5.0
WHOLE_SECONDS = 15.0
MOST_READ = 64 * 1024
# Of the status line and the headers.
MOST_HEADERS = 32 * 1024
# Addresses of one host that are tried.
MOST_TRIED = 4
USER_AGENT = "django-taskqueue"

# `resolve(host, port)`: the addresses of a host as text. Raises OSError.
Resolve = Callable[[str, int], Sequence[str]]


class Refused(Exception):
    """The host must not be called; the message says why, and names no address."""


class NoAnswer(Exception):
    """The request got no answer; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of a server."""

    status: int
    # The beginning of its body.
    body: bytes
    # The header of that name; empty: none.
    retry_after: str


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host from the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    allowed: Allowed,
    resolve: Resolve = resolve,
) -> Answer:
    """Send a POST. Raises `Refused`, and `NoAnswer` if no answer came in time."""
    return send("POST", url, body, headers, allowed=allowed, resolve=resolve)


def send(
    method: str,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    allowed: Allowed,
    resolve: Resolve = resolve,
) -> Answer:
    """Send a request of that method. Raises as `post` does."""
    deadline = Deadline(WHOLE_SECONDS)
    try:
        target = target_of(url, allowed)
    except InvalidURL as error:
        raise Refused(str(error)) from None
    addresses = checked_addresses(target, allowed, resolve)
    try:
        with closing(_connected(target, addresses)) as connected:
            bounded = BoundedSocket(connected, deadline)
            return _exchanged(target, bounded, method, body, headers)
    except TimeoutError:
        raise NoAnswer("No answer came in time.") from None
    except ssl.SSLCertVerificationError as error:
        raise NoAnswer(f"The certificate is not valid: {error.verify_message}.") from None
    except ssl.SSLError as error:
        raise NoAnswer(f"TLS failed: {error.reason or 'unknown'}.") from None
    except OSError as error:
        raise NoAnswer(f"The connection failed: {error.strerror or 'unknown'}.") from None
    except (HTTPException, ValueError) as error:
        raise NoAnswer(f"The answer is not HTTP ({type(error).__name__}).") from None


def checked_addresses(target: Target, allowed: Allowed, resolve: Resolve) -> list[Address]:
    """Return the addresses of a host if all may be called. Raises `Refused` and `NoAnswer`."""
    if target.literal is not None:
        addresses = [target.literal]
    else:
        addresses = [address_of(text) for text in _resolved(target, resolve)]
    if not addresses:
        raise NoAnswer("The host has no address.")
    for address in addresses:
        if refusal := target.refusal(address, allowed):
            raise Refused(refusal)
    return addresses


def _resolved(target: Target, resolve: Resolve) -> Sequence[str]:
    """Resolve the name in a thread, as nothing else limits the wait of the system's resolver."""
    found: list[Sequence[str]] = []
    errors: list[OSError] = []

    def look() -> None:
        try:
            found.append(resolve(target.host, target.port))
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=look, name="taskqueue-resolve", daemon=True)
    thread.start()
    thread.join(CONNECT_SECONDS)
    if errors:
        raise NoAnswer(f"The host is not known: {errors[0].strerror or 'unknown'}.")
    if not found:
        raise NoAnswer("The host was not resolved in time.")
    return found[0]


def _connected(target: Target, addresses: Sequence[Address]) -> socket.socket:
    """Return a socket to the first of these addresses that accepts. Raises OSError."""
    deadline = Deadline(CONNECT_SECONDS)
    error: OSError = TimeoutError()
    for address in addresses[:MOST_TRIED]:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        plain = socket.socket(family, socket.SOCK_STREAM)
        try:
            plain.settimeout(deadline.left())
            # To the address, not to the name, so that the resolver is not asked again.
            plain.connect((str(address), target.port))
            plain.settimeout(deadline.left())
            if target.scheme == "http":
                return plain
            context = ssl.create_default_context()
            return context.wrap_socket(plain, server_hostname=target.host)
        except OSError as failed:
            plain.close()
            error = failed
        except BaseException:  # The task was asked to stop, or its time is over.
            plain.close()
            raise
    raise error


def _exchanged(
    target: Target, connected: BoundedSocket, method: str, body: bytes, headers: Mapping[str, str]
) -> Answer:
    connection = HTTPConnection(target.host, target.port)
    connection.auto_open = 0  # It must never connect by itself.
    given: Any = connected
    connection.sock = given
    connection.putrequest(method, target.path, skip_host=True, skip_accept_encoding=True)
    own = {
        "Host": target.authority, "User-Agent": USER_AGENT, "Accept": "*/*",
        "Accept-Encoding": "identity", "Content-Length": str(len(body)), "Connection": "close",
    }  # fmt: skip
    for name, value in (own | dict(headers)).items():
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    read = b""
    try:
        read = response.read(MOST_READ)
    except (OSError, HTTPException):
        pass  # The status says how it ended.
    retry_after = response.getheader("Retry-After") or ""
    return Answer(status=response.status, body=read, retry_after=retry_after)


class Deadline:
    """The moment at which something must be over."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds until then. Raises TimeoutError if it has passed."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class BoundedSocket:
    """A socket for `http.client` with one deadline, not a timeout for each byte."""

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._socket = connected
        self._deadline = deadline

    def sendall(self, data: Any) -> None:
        """Send all of it. Raises TimeoutError."""
        self._socket.settimeout(self._deadline.left())
        self._socket.sendall(data)

    def makefile(self, mode: str, *options: Any, **named: Any) -> io.BufferedReader:
        """Return the file from which the answer is read."""
        return io.BufferedReader(_Incoming(self._socket, self._deadline))

    def close(self) -> None:
        """Do nothing: the code that opened the socket closes it."""


class _Incoming(io.RawIOBase):
    """A reader of an answer, until the deadline and up to a number of bytes."""

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._socket = connected
        self._deadline = deadline
        self._left = MOST_HEADERS + MOST_READ

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left <= 0:
            return 0
        self._socket.settimeout(self._deadline.left())
        number = self._socket.recv_into(buffer, min(len(buffer), self._left))
        self._left -= number
        return number
