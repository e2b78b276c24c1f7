"""Tasks become ready through one door."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.worker_process import ROOT

PACKAGE = ROOT / "taskqueue"
DOOR = PACKAGE / "engine" / "ready.py"


def calls(path: Path) -> Iterator[ast.Call]:
    """Yield the calls of a module that updates anything; the others need not be parsed."""
    text = path.read_text()
    nodes = ast.walk(ast.parse(text)) if ".update(" in text else ()
    return (node for node in nodes if isinstance(node, ast.Call))


def writes_ready(call: ast.Call) -> bool:
    return getattr(call.func, "attr", "") == "update" and any(
        keyword.arg == "ready_at"
        or (keyword.arg == "status" and "TaskStatus.READY" in ast.unparse(keyword.value))
        for keyword in call.keywords
    )


def test_no_other_module_makes_tasks_ready() -> None:
    writers = [path for path in PACKAGE.rglob("*.py") if any(map(writes_ready, calls(path)))]
    assert writers == [DOOR]
