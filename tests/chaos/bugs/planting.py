"""How a bug gets into a process: by rewriting a statement or replacing a function, and back."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from taskqueue.engine.statement import Statement


class DoesNotFit(Exception):
    """The code has changed, and a bug no longer fits into it: mend the bug."""


class Planting:
    """What was changed in this process, so that it can be taken back."""

    def __init__(self) -> None:
        self.vendor = connection.vendor
        self._before: list[tuple[Any, str, Any]] = []

    def wording(self, verb: str) -> str:
        """The path of a statement in this database's wording of the engine."""
        name = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}[self.vendor]
        return f"taskqueue.engine.{self.vendor}:{name}.{verb}"

    def replace(self, path: str, value: Any) -> Any:
        """Put a value in place of what `package.module:name` or `…:Class.name` is; what was."""
        owner, name = _find(path)
        before = owner.__dict__[name]
        self._before.append((owner, name, before))
        setattr(owner, name, value)
        return before

    def rewrite(self, path: str, old: str, new: str) -> None:
        """Put other words into a statement."""
        owner, name = _find(path)
        statement = getattr(owner, name)
        is_for_both = isinstance(statement, Statement)
        text = getattr(statement, self.vendor) if is_for_both else statement
        if old not in text:
            raise DoesNotFit(f"{path} does not say {old!r}: the bug that drops it must be mended.")
        text = text.replace(old, new)
        self.replace(
            path, dataclasses.replace(statement, **{self.vendor: text}) if is_for_both else text
        )

    def restore(self) -> None:
        """Take everything back."""
        for owner, name, value in reversed(self._before):
            setattr(owner, name, value)
        self._before.clear()


@contextmanager
def planting() -> Iterator[Planting]:
    """A planting that is taken back at the end."""
    made = Planting()
    try:
        yield made
    finally:
        made.restore()


def _find(path: str) -> tuple[Any, str]:
    module_name, _, name = path.partition(":")
    owner: Any = importlib.import_module(module_name)
    *owners, name = name.split(".")
    for each in owners:
        owner = getattr(owner, each)
    # Asking for it imports what is imported late.
    if not hasattr(owner, name) or name not in owner.__dict__:
        raise DoesNotFit(f"{path} is not there: the bug that changes it must be mended.")
    return owner, name
