"""System checks of a worker, run beside its imports.

A copy of the process runs them and ends. So neither the worker nor its children import what only
checks need, such as the project's URLs and views.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from django.core.management.base import BaseCommand, OutputWrapper, SystemCheckError

from taskqueue.declarations.checks import definitions_unread
from taskqueue.worker.child import name_process, obey_parent_alone
from taskqueue.worker.forks import Template


class Checker:
    """The checks of a command, and the process in which they run."""

    def __init__(self, command: BaseCommand) -> None:
        self._command = command
        self._pid = 0
        self._answer: io.BufferedReader | None = None

    def begin(self, template: Template) -> None:
        """Run the checks in a copy of this process, if the template could be one."""
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
        self._answer = os.fdopen(read, "rb")

    def end(self, until_reached: Callable[[Callable[[], None]], object]) -> None:
        """Wait for the checks, show their warnings, and raise `SystemCheckError` for errors.

        They run here, again and again while the database is away, if the copy has not ended well.
        """
        answer = b"" if self._answer is None else self._answer.read()
        self.close()
        if not answer:
            with definitions_unread():
                until_reached(self._command.check)
            return
        written, error = json.loads(answer)
        if written:
            self._command.stderr.write(written, lambda text: text, ending="")
        if error is not None:
            raise SystemCheckError(error)

    def close(self) -> None:
        """End the process."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def _check(command: BaseCommand, write: int, parent: int) -> NoReturn:
    try:
        obey_parent_alone(parent)
        name_process("taskqueue-check")
        written, error = io.StringIO(), None
        command.stderr = OutputWrapper(written)
        # Whatever else is raised is raised again where the worker runs the checks itself.
        with open(write, "wb") as answer, suppress(Exception), definitions_unread():
            try:
                command.check()
            except SystemCheckError as failure:
                error = str(failure)
            answer.write(json.dumps([written.getvalue(), error]).encode())
            sys.stdout.flush()
    finally:
        os._exit(0)
