"""Watch the sockets of children for messages, and for room to send more."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial

from taskqueue.worker.children import ChildProcess
from taskqueue.worker.forks import Template
from taskqueue.worker.receiving import Receiver
from taskqueue.worker.wakeup import Reloader, Watch


class ChildSockets:
    """Receives frames of children as they arrive. Only the main thread uses it."""

    def __init__(self, watch: Watch, receiver: Receiver, reloader: Reloader | None) -> None:
        self._watch = watch
        self._receiver = receiver
        self._reloader = reloader

    def watch(self, child: ChildProcess) -> None:
        """Receive the child's frames from now on."""
        self._watch.add(child.socket, partial(self._receive, child))

    def watch_template(self, template: Template) -> None:
        """Receive the template's message once it has loaded the tasks."""
        self._watch.add(template.socket, partial(self._hear_template, template))

    def watch_outgoing(self, children: Iterable[ChildProcess]) -> None:
        """Continue sending to children whose sockets had no room."""
        for child in children:
            if child.has_outgoing or child.is_blocked:
                child.is_blocked = child.has_outgoing
                self._watch.add(
                    child.socket, partial(self._receive, child), writes=child.is_blocked
                )

    def _receive(self, child: ChildProcess) -> None:
        child.send()
        was_ready = child.is_ready
        self._receiver.receive(child, time.monotonic(), self._watch.remove)
        if self._reloader and child.is_ready and not was_ready:
            self._reloader.watch(child.files)

    def _hear_template(self, template: Template) -> None:
        self._watch.remove(template.socket)
        template.hear()
