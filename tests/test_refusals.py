"""Refusals are English everywhere, and remember what tells them in other languages."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from taskqueue.core.refusals import Refusal, joined, refusal, why
from taskqueue.exceptions import InvalidTask
from tests.catalogue import PACKAGE

ROOMS = (
    "rules", "engine/alerts", "engine/control", "engine/operations", "engine/schedules",
    "engine/webhooks",
)  # fmt: skip
"""The rooms whose refusals the admin tells its readers."""
KEPT_IN_ENGLISH = {
    # Found when a worker starts, and told by its log and by the trouble of a row.
    "engine/alerts/declaring.py", "engine/schedules/syncing.py",
    # Told to those who call from Python alone.
    "engine/control/calls.py", "engine/control/filters.py",
}  # fmt: skip


def test_a_refusal_is_its_english_text() -> None:
    text = refusal("Queue {name!r} has {count:,} tasks.", name="mail", count=1234)
    assert text == "Queue 'mail' has 1,234 tasks."
    error = InvalidTask(text)
    assert type(str(error)) is str
    assert (str(error), why(error)) == (text, text)
    assert why(error).template == "Queue {name!r} has {count:,} tasks."  # type: ignore[attr-defined]


def test_an_error_of_somebody_else_is_told_by_its_text() -> None:
    assert why(ValueError("odd", 2)) == "('odd', 2)"
    assert why(ValueError()) == ""


def test_several_refusals_are_combined_into_one() -> None:
    text = joined([refusal("a {name}", name="{b}"), "c"])
    assert text == "a {b}\nc"
    assert joined([]) == ""


def test_an_error_reaches_another_process_as_its_text() -> None:
    error = InvalidTask(refusal("No {thing!r}.", thing=lambda: None))
    told = pickle.loads(pickle.dumps(error))
    assert str(told) == str(error)
    assert not isinstance(why(told), Refusal)


def _unmarked(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            text = node.exc.args[0]
            if isinstance(text, ast.JoinedStr | ast.Constant):
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}"


@pytest.mark.parametrize("room", ROOMS)
def test_every_refusal_that_people_read_can_be_translated(room: str) -> None:
    files = [
        path
        for path in sorted((PACKAGE / room).glob("*.py"))
        if str(path.relative_to(PACKAGE)) not in KEPT_IN_ENGLISH
    ]
    assert files
    assert [place for path in files for place in _unmarked(path)] == []


def _calls(path: Path) -> Iterator[tuple[int, str, set[str | None]]]:
    """The templates of a file, with what fills their gaps."""
    source = path.read_text(encoding="utf-8")
    if "import refusal as _\n" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "_":
            text = node.args[0]
            assert isinstance(text, ast.Constant) or path.name == "cron_fields.py"
            if isinstance(text, ast.Constant):
                yield node.lineno, str(text.value), {given.arg for given in node.keywords}


def test_every_gap_of_a_refusal_is_filled() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, template, given in _calls(path)
        if {name for _text, name, _spec, _kind in Formatter().parse(template) if name} != given
    ]
    assert wrong == []
