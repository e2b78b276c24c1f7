"""A real worker sends a webhook to a receiver in Node, which verifies it.

By the words of the specification, or by the package `standardwebhooks` of npm where
`STANDARD_WEBHOOKS` is the path of its `dist/index.js`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from taskqueue import webhooks
from taskqueue.core.webhook_signatures import new_secret
from taskqueue.models import Delivery, Endpoint
from taskqueue.models.webhook import DeliveryStatus
from taskqueue.results import get_result
from tests.conftest import StartWorker
from tests.sample.tasks import fail

NODE = shutil.which("node")
PATIENCE = 120
pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(NODE is None, reason="Node is not installed"),
]


class Running:
    """A receiver in Node, and what it prints."""

    def __init__(self, secret: str) -> None:
        self._lines: Queue[str] = Queue()
        self._process = subprocess.Popen(
            [str(NODE), str(Path(__file__).with_name("receiver.mjs"))],
            env={**os.environ, "WEBHOOK_SECRET": secret},
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.port = self.next()["port"]

    def next(self) -> Any:
        """Return what it prints next."""
        return json.loads(self._lines.get(timeout=PATIENCE))

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)


@contextmanager
def running(secret: str) -> Iterator[Running]:
    """Run a receiver."""
    made = Running(secret)
    try:
        yield made
    finally:
        made.stop()


def test_node_verifies_what_a_worker_sends_and_what_is_sent_again(
    start_worker: StartWorker,
) -> None:
    made = webhooks.create("https://hooks.test/", kinds=["task.failed"])
    with running(made.secret) as node:
        Endpoint.objects.update(url=f"http://127.0.0.1:{node.port}/")
        start_worker(settings={"WEBHOOK_ALLOW": ["127.0.0.1/32"]})
        result = fail.enqueue("no paper")
        first = node.next()
        assert first["message"]["type"] == "task.failed"
        assert first["message"]["data"]["id"] == str(result.id)
        _until_delivered()
        webhooks.redeliver(Delivery.objects.get().id)
        again = node.next()
        assert again["id"] == first["id"]
        assert again["message"] == first["message"]


def test_node_refuses_what_another_secret_has_signed(start_worker: StartWorker) -> None:
    made = webhooks.create("https://hooks.test/")
    with running(new_secret()) as node:
        Endpoint.objects.update(url=f"http://127.0.0.1:{node.port}/")
        start_worker(settings={"WEBHOOK_ALLOW": ["127.0.0.1/32"]})
        webhooks.test(made.endpoint.pk)
        assert "signature" in node.next()["error"]


def _until_delivered() -> None:
    delivery = Delivery.objects.get()
    get_result(delivery.task_id).wait(timeout=PATIENCE)
    delivery.refresh_from_db()
    assert delivery.status == DeliveryStatus.DELIVERED
