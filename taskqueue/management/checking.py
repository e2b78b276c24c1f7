"""System checks of a worker, which run while it imports its code.

A copy of the process runs them and ends. So neither the worker nor its children import modules that
only checks need, such as the project's URLs and views.
"""

from __future__ import annotations

import io
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from django.core.management.base import BaseCommand, OutputWrapper, SystemCheckError

from taskqueue.declarations.checks import definitions_unread
from taskqueue.worker.child import name_process, obey_parent_alone
from taskqueue.worker.forks import Template

# Seconds for the checks of any project. After that the worker runs the checks itself.
LONGEST = 300.0
# Milliseconds between two checks whether the copy has ended.
LOOK = 200
# An answer is its length in this many bytes, and JSON text.
LENGTH_BYTES = 8
# The output of the checks, and the text of their errors.
Answer = tuple[str, str | None]


class Checker:
    """The checks of a command, and the process in which they run."""

    def __init__(self, command: BaseCommand) -> None:
        self._command = command
        self._pid = 0
        self._pipe: int | None = None

    def begin(self, template: Template) -> None:
        """Run the checks in a copy of this process, if it could be copied as a template."""
        if template.socket is None:
            return
        read, write = os.pipe()
        parent = os.getpid()
        self._pid = os.fork()
        if not self._pid:
            os.close(read)
            template.socket.close()
            _check(self._command, write, parent)
        os.close(write)
        self._pipe = read

    def end(self, until_reached: Callable[[Callable[[], None]], object]) -> None:
        """Wait for the checks, show their warnings, and raise `SystemCheckError` for errors.

        If the copy has not ended well, the checks run here, repeatedly while the database is away.
        """
        answer = None if self._pipe is None else self._received(self._pipe)
        self.close()
        if answer is None:
            with definitions_unread():
                until_reached(self._command.check)
            return
        written, error = answer
        if written:
            self._command.stderr.write(written, lambda text: text, ending="")
        if error is not None:
            raise SystemCheckError(error)

    def _received(self, pipe: int) -> Answer | None:
        """Return the answer of the copy; None if it ends without one, or takes too long.

        The pipe may stay open, because a process that a check has started holds it too.
        """
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        until = time.monotonic() + LONGEST
        received, has_ended = b"", False
        while not is_whole(received) and time.monotonic() < until:
            if poll.poll(0 if has_ended else LOOK):
                part = os.read(pipe, 65536)
                if not part:
                    break
                received += part
            elif has_ended:
                break
            else:
                ended = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                has_ended = ended is not None
        return answer_of(received)

    def close(self) -> None:
        """End the process."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def is_whole(received: bytes) -> bool:
    """Return whether these bytes contain a whole answer."""
    size = int.from_bytes(received[:LENGTH_BYTES])
    return len(received) >= LENGTH_BYTES and len(received) >= LENGTH_BYTES + size


def answer_of(received: bytes) -> Answer | None:
    """Return the answer in these bytes; None if it is incomplete or invalid."""
    if not is_whole(received):
        return None
    size = int.from_bytes(received[:LENGTH_BYTES])
    try:
        written, error = json.loads(received[LENGTH_BYTES : LENGTH_BYTES + size])
    except (ValueError, TypeError):
        return None
    return written, error


def _check(command: BaseCommand, write: int, parent: int) -> NoReturn:
    try:
        obey_parent_alone(parent)
        name_process("taskqueue-check")
        written, error = io.StringIO(), None
        command.stderr = OutputWrapper(written)
        # Other errors occur again when the worker runs the checks itself.
        with open(write, "wb") as answer, suppress(Exception), definitions_unread():
            try:
                command.check()
            except SystemCheckError as failure:
                error = str(failure)
            text = json.dumps([written.getvalue(), error]).encode()
            answer.write(len(text).to_bytes(LENGTH_BYTES) + text)
            sys.stdout.flush()
    finally:
        os._exit(0)
