"""The client's log: requests and answers, written before and after each call."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.chaos.history import Enqueue


class ClientLog:
    """A file to which clients append, each line in one write; several processes may.

    >>> log.asked(7, kind="work")
    >>> result = work.using(metadata={"sequence": 7}).enqueue()
    >>> log.ok(7, [result.id], created=result.created)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def asked(
        self,
        sequence: int,
        *,
        kind: str = "",
        is_atomic: bool = False,
        unique_key: str = "",
        unique_scope: str = "",
        workers: int = 1,
        count: int = 1,
    ) -> None:
        """Before the call. Without an answer it counts as unknown."""
        self._write(
            sequence, state="asked", kind=kind, is_atomic=is_atomic, unique_key=unique_key,
            unique_scope=unique_scope, workers=workers, count=count,
        )  # fmt: skip

    def ok(self, sequence: int, task_ids: Iterable[object], *, created: bool = True) -> None:
        """The call returned, and its transaction committed."""
        ids = [str(task_id) for task_id in task_ids]
        self._write(sequence, state="ok", task_ids=ids, created=created)

    def failed(self, sequence: int) -> None:
        """It raised before COMMIT, or was rolled back: nothing of it may ever be there."""
        self._write(sequence, state="failed")

    def unknown(self, sequence: int) -> None:
        """The answer to its COMMIT was lost: it happened as a whole, or not at all."""
        self._write(sequence, state="unknown")

    def close(self) -> None:
        """Write no more."""
        os.close(self._descriptor)

    def _write(self, sequence: int, **known: Any) -> None:
        os.write(self._descriptor, (json.dumps({"sequence": sequence, **known}) + "\n").encode())


def read_client_log(path: Path) -> tuple[Enqueue, ...]:
    """What clients wrote, one value for each enqueue."""
    enqueues: dict[int, Enqueue] = {}
    for line in whole_lines(path):
        known = json.loads(line)
        if "task_ids" in known:
            known["task_ids"] = tuple(known["task_ids"])
        before = enqueues.get(known["sequence"])
        if before is None:
            enqueues[known["sequence"]] = Enqueue(**known)
        elif known["state"] == "asked":
            raise ValueError(f"Two enqueues have the sequence {before.sequence}: each has its own.")
        else:
            enqueues[before.sequence] = replace(before, **known)
    return tuple(enqueues.values())


def whole_lines(path: Path) -> Iterator[str]:
    """The lines of a file to which others append. One without its end is not there yet."""
    if not path.exists():
        return
    text = path.read_text()
    yield from text[: text.rfind("\n") + 1].splitlines()
