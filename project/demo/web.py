"""The web server's port, and whether it answers."""

from __future__ import annotations

import socket
import time
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from project.demo.errors import DemoError
from project.demo.processes import Process

HOST = "127.0.0.1"
USUAL_PORT = 8000
PAGES = ("/", "/admin/login/", "/static/project/demo.css")
START_SECONDS = 60
REQUEST_SECONDS = 10
OK = 200


def choose_port(wanted: int | None) -> int:
    """Return the wanted port, else the usual one, else any that is free.

    Raises `DemoError` if a port is wanted and taken.
    """
    if wanted is not None:
        if not _is_free(wanted):
            raise DemoError(f"Port {wanted} is taken. Choose another one, or leave --port out.")
        return wanted
    return USUAL_PORT if _is_free(USUAL_PORT) else _any_free_port()


def wait_until_it_answers(server: Process, address: str) -> None:
    """Return once the web server has given out each of `PAGES`. Raises `DemoError`."""
    deadline = time.monotonic() + START_SECONDS
    for page in PAGES:
        while (status := _status(address + page)) is None:
            server.ensure_alive()
            if time.monotonic() > deadline:
                raise DemoError(f"Nothing answers at {address} yet.\n{server.tail()}")
            time.sleep(0.1)
        server.ensure_alive()  # Or it was another one that answered.
        if status != OK:
            raise DemoError(f"{address}{page} answers with status {status}.\n{server.tail()}")


def _status(url: str) -> int | None:
    """Return the status of the answer; None while there is no answer."""
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=REQUEST_SECONDS) as response:
            return int(response.status)
    except HTTPError as answer:
        return answer.code
    except OSError:
        return None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # As runserver does.
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _any_free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
