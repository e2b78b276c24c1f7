"""Worker processes without the wait for imports: forked from a process that has them all.

The tests start hundreds of workers, and each would spend half a second of the processor on loading
Django. A process that has done so, and nothing else (no thread, no connection), is asked to fork
a copy, which becomes the leader of a session of its own and goes on as `django runworker` from
there. What that worker starts in its turn, it starts as ever.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
LARGEST_MESSAGE = 1 << 17
CONNECTION, MAIL = "TASKQUEUE_TEST_CONNECTION", "TASKQUEUE_TEST_MAIL"
OWN = (CONNECTION, MAIL, "TASKQUEUE_TEST_SETTINGS", "TASKQUEUE_TEST_SPANS", "PYTEST_CURRENT_TEST")
"""What may differ between the environments of workers that are forked from one process."""
MODULE = "DJANGO_SETTINGS_MODULE"
LOADED = (
    "taskqueue.management.working",
    "taskqueue.worker.supervisor",
    "taskqueue.worker.duties",
    "taskqueue.worker.periodic_duties",
    "taskqueue.worker.bodies.orders",
    "taskqueue.engine.workflows.rounds",
    "taskqueue.migrations.0001_initial",
    "taskqueue.backend",
    "taskqueue.workflows",
    "taskqueue.control",
)
"""What every worker or its children import after that, which no test of workers is about."""


class WarmStart:
    """A process to fork workers from, for one environment; it starts with the first of them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = {**_shared(environment), CONNECTION: environment[CONNECTION]}
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Line | None = None

    def start(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], log_path: Path
    ) -> WarmProcess:
        """Start `django` with these arguments; what it writes is added to the file."""
        if self._line is None:
            self._line = Line(self._begin())
        log_path.touch()  # There from the first moment, as with a process that a shell starts.
        own = {name: environment[name] for name in OWN if name in environment}
        pid = self._line.ask("start", list(arguments), own, str(log_path))
        return WarmProcess(self._line, pid)

    def end(self) -> None:
        """End the process; the workers are ended by whoever has started them."""
        if self._process is not None and self._line is not None:
            self._line.close()
            self._process.wait(timeout=60)

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.warm_start", str(theirs.fileno())],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        return ours


class WarmStarts:
    """A process to fork workers from for each settings module that workers of the tests have."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = _shared(environment)
        self._found: dict[str, WarmStart] = {}

    def fitting(self, environment: Mapping[str, str]) -> WarmStart | None:
        """The one for this environment, if it differs from others in its settings alone."""
        module = environment[MODULE]
        if _shared(environment) != {**self._environment, MODULE: module}:
            return None
        if module not in self._found:
            self._found[module] = WarmStart(environment)
        return self._found[module]

    def end(self) -> None:
        """End all of them."""
        for each in self._found.values():
            each.end()


class Line:
    """The way to the process that workers are forked from; any thread may use it."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._lock = threading.Lock()

    def ask(self, *question: Any) -> Any:
        """Return the answer."""
        with self._lock:
            self._socket.sendall(json.dumps(question).encode())
            answer = self._socket.recv(LARGEST_MESSAGE)
        if not answer:
            raise AssertionError("The process that workers are forked from has ended.")
        return json.loads(answer)

    def close(self) -> None:
        """Ask for nothing more, so that the process ends."""
        self._socket.close()


class WarmProcess:
    """One that was forked; like `subprocess.Popen`, as far as tests need it."""

    def __init__(self, line: Line, pid: int) -> None:
        self._line = line
        self._code: int | None = None
        self.pid = pid

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it runs."""
        if self._code is None:
            self._code = self._line.ask("poll", self.pid)
        return self._code

    def wait(self, timeout: float) -> int:
        """Return the exit code once it has ended, or raise `TimeoutExpired`."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(["runworker"], timeout)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        """Its number is nobody else's until its end has been polled."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _shared(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in OWN}


def _serve(sock: socket.socket) -> list[str] | None:
    """Answer until nobody asks any more. Return in the copies, with their arguments."""
    while question := sock.recv(LARGEST_MESSAGE):
        verb, *parameters = json.loads(question)
        if verb == "poll":
            ended, status = os.waitpid(parameters[0], os.WNOHANG)
            sock.sendall(json.dumps(os.waitstatus_to_exitcode(status) if ended else None).encode())
        elif not os.fork():
            os.setsid()  # Before anybody knows of it, who might end it with its whole group.
            sock.sendall(json.dumps(os.getpid()).encode())
            sock.close()
            return _become(*parameters)
    return None


def _become(arguments: list[str], own: dict[str, str], log_path: str) -> list[str]:
    """Be to this process what the start of a program would be."""
    from django.conf import settings

    from tests.settings import mail_settings

    log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.environ.update(own)
    random.seed()
    settings.TASKQUEUE = json.loads(os.environ["TASKQUEUE_TEST_SETTINGS"])
    settings.DATABASES["default"].update(json.loads(os.environ[CONNECTION]))
    if MAIL in own:
        for name, value in mail_settings(own[MAIL]).items():
            setattr(settings, name, value)
    return arguments


def _load() -> None:
    """All that a worker imports before it looks at its settings."""
    import django
    from django.core.management import load_command_class

    os.environ["TASKQUEUE_TEST_SETTINGS"] = "{}"
    django.setup()
    load_command_class("taskqueue", "runworker")
    for module in LOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


def run_as_program(main: Callable[[], None]) -> NoReturn:
    """Run it and end as the interpreter does, but leave the memory to the kernel.

    To free each object of all modules takes a copy of each page, longer than most workers run.
    """
    code = 0
    try:
        main()
    except SystemExit as error:
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except KeyboardInterrupt:
        raise  # Ends the process by the signal.
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # Waits for threads that are no daemons.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def main() -> None:
    """Serve whoever holds the other end of the socket; in a copy, be a worker."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    _load()
    arguments = _serve(sock)
    if arguments is not None:
        from django.core.management import execute_from_command_line

        run_as_program(lambda: execute_from_command_line(["django", *arguments]))


if __name__ == "__main__":
    main()
