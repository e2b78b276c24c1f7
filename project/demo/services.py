"""The web server and the worker of one demo, started and stopped together."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from project.demo import web
from project.demo.errors import DemoError
from project.demo.processes import Process

TRIES = 5
PORT_TAKEN = "port is already in use"


class Services:
    """Both processes. Whatever happens, none of them outlives the `with` block."""

    def __init__(self, directory: Path, *, port: int | None, concurrency: int) -> None:
        self._directory = directory
        self._port = port
        self._concurrency = concurrency
        self.address = ""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._web = self._serve(stack)
            self._worker = stack.enter_context(
                Process(
                    "worker",
                    *("runworker", "--noreload", "--concurrency", str(self._concurrency)),
                    directory=self._directory,
                )
            )
            self._stack = stack.pop_all()
        return self

    def _serve(self, stack: ExitStack) -> Process:
        """Start the web server; on another port, if somebody takes the chosen one meanwhile."""
        for _ in range(TRIES):
            port = web.choose_port(self._port)
            address = f"{web.HOST}:{port}"
            process = Process("web", "runserver", "--noreload", address, directory=self._directory)
            try:
                web.wait_until_it_answers(process, f"http://{address}")
            except BaseException as error:
                process.stop()
                is_taken = isinstance(error, DemoError) and PORT_TAKEN in process.tail()
                if self._port is not None or not is_taken:
                    raise
            else:
                self.address = f"http://{address}"
                return stack.enter_context(process)
        raise DemoError(f"No port stayed free in {TRIES} tries.\n{process.tail()}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def ensure_alive(self) -> None:
        """Raise `DemoError`, with the end of its log, if one of them has ended."""
        self._worker.ensure_alive()
        self._web.ensure_alive()

    def stop_worker(self) -> int:
        """Let the worker end as a deploy would, and return its exit code."""
        return self._worker.stop()

    def tail(self) -> str:
        """Return the ends of the worker's log."""
        return self._worker.tail()
