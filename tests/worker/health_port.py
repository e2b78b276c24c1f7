"""Asking a worker's port for its health, as a probe does."""

from __future__ import annotations

import json
import re
from http.client import HTTPConnection

from tests.worker_process import WorkerProcess, wait_until

FLAGS = ("--health-port", "0")
OPENED = re.compile(r"Port open address=(\S+):(\d+) ")
WELL = {"live": 200, "ready": 200}
BUSY_OTHERWISE = {"live": 200, "ready": 503}
"""A probe that looks whether it lives lets it go on; one that looks whether it is ready waits."""
STATUSES = {200: {"status": "ok"}, 503: {"status": "unavailable"}}


def port_of(worker: WorkerProcess) -> int:
    """The port that the system chose for it."""
    found = wait_until(lambda: OPENED.search(worker.log()), what="a port")
    assert found[1] == "127.0.0.1"
    return int(found[2])


def health_of(worker: WorkerProcess, *, seconds: float = 10) -> dict[str, int]:
    """The status codes of both routes; the bodies hold the same and nothing more."""
    port = port_of(worker)
    found = {}
    for route in WELL:
        connection = HTTPConnection("127.0.0.1", port, timeout=seconds)
        try:
            connection.request("GET", f"/{route}")
            answer = connection.getresponse()
            assert json.loads(answer.read()) == STATUSES[answer.status]
        finally:
            connection.close()
        found[route] = answer.status
    return found


def wait_for_health(worker: WorkerProcess, expected: dict[str, int]) -> None:
    """Return once both routes answer so."""
    wait_until(lambda: health_of(worker) == expected, what=f"{expected}")
