"""The settings of tests, in a project that hears of its errors by mail and by Sentry.

| environment variable | meaning |
| --- | --- |
| `TASKQUEUE_TEST_REPORTS` | the folder in which mails and events are found |

LOGGING is Django's default: what reaches ADMINS does so without a word of the project.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport
from sentry_sdk.worker import BackgroundWorker

from tests.settings import *  # noqa: F403

REPORTS = Path(os.environ["TASKQUEUE_TEST_REPORTS"])
ADMINS: list[Any] = ["ann@example.com" if django.VERSION >= (6, 0) else ("Ann", "ann@example.com")]
MAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": MAIL_BACKEND, "OPTIONS": {"file_path": REPORTS / "mail"}}}
else:
    EMAIL_BACKEND, EMAIL_FILE_PATH = MAIL_BACKEND, REPORTS / "mail"
LATENCY = 0.05
"""Seconds that the network takes to carry an event."""


class ToFile(Transport):
    """As Sentry's own, sends in a thread of its own; to a file in place of a server."""

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        super().__init__(options)
        self._worker = BackgroundWorker()

    def capture_envelope(self, envelope: Envelope) -> None:
        event = envelope.get_event()
        if event is not None:
            self._worker.submit(lambda: self._send(json.dumps(event, default=str)))

    def _send(self, text: str) -> None:
        time.sleep(LATENCY)
        with (REPORTS / f"sentry-{os.getpid()}.jsonl").open("a") as file:
            file.write(text + "\n")

    def flush(self, timeout: float, callback: Callable[[int, float], None] | None = None) -> None:
        self._worker.flush(timeout, callback)

    def kill(self) -> None:
        self._worker.kill()


sentry_sdk.init(dsn="http://public@localhost/1", transport=ToFile)
