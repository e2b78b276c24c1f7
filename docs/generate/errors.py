"""Exceptions, refusals, system checks and notices, from where the code declares them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import taskqueue
from docs.generate.markdown import code, prose, table
from taskqueue import exceptions as own
from taskqueue.api.problems import KNOWN
from taskqueue.monitoring.notice_texts import TEXTS

PACKAGE = Path(taskqueue.__file__).parent
OWN = tuple(error for error in vars(own).values() if inspect.isclass(error))
SOMETHING = "…"
"""The mark in place of a part of a message that differs each time."""


def exceptions() -> str:
    """Return the exceptions with their bases, in the order of their module."""
    rows = []
    for name, error in vars(own).items():
        is_error = inspect.isclass(error) and issubclass(error, BaseException)
        if not is_error or name.startswith("_") or error.__module__ != own.__name__:
            continue
        bases = ", ".join(code(base.__name__) for base in _public_bases(error))
        place = "taskqueue" if name in taskqueue.__all__ else "taskqueue.exceptions"
        rows.append((code(name), code(place), bases, prose(error.__doc__ or "")))
    return table(["exception", "import from", "is a", "meaning"], rows)


def _public_bases(error: type[BaseException]) -> Iterator[type]:
    for base in error.__bases__:
        if base.__name__.startswith("_"):
            yield from _public_bases(base)
        else:
            yield base


def refusals() -> str:
    """Return the codes of problems that the REST API answers, by status."""
    found = {
        (status, word): sentence or (prose(error.__doc__ or "") if error in OWN else "")
        for error, status, word, sentence in KNOWN
    }
    for path in sorted((PACKAGE / "api").rglob("*.py")):
        tree = ast.parse(path.read_text())
        for call in _calls_in(tree, "Problem"):
            status, word, *detail = call.args
            if isinstance(status, ast.Constant) and isinstance(word, ast.Constant):
                key = (int(str(status.value)), str(word.value))
                found[key] = found.get(key) or _text(detail[0], _assigned(tree, call.lineno))
        for node in ast.walk(tree):
            match node:
                case ast.Return(ast.Tuple([ast.Constant(int(number)), ast.Constant(name), *rest])):
                    found.setdefault((number, str(name)), _text(rest[0]))
    rows = [
        (str(status), code(word), "" if meaning == SOMETHING else meaning)
        for (status, word), meaning in sorted(found.items())
    ]
    return table(["status", "code", "meaning"], rows)


def _assigned(tree: ast.Module, line: int) -> dict[str, ast.expr]:
    """Return what names were last given before a line of a module."""
    return {
        node.targets[0].id: node.value
        for node in sorted(
            (node for node in ast.walk(tree) if isinstance(node, ast.Assign)),
            key=lambda node: node.lineno,
        )
        if node.lineno <= line and isinstance(node.targets[0], ast.Name)
    }


def checks() -> str:
    """Return the system checks."""
    rows: dict[str, tuple[str, str]] = {}
    for kind in ("Error", "Warning"):
        for call in _calls(kind, PACKAGE):
            words = {word.arg: _text(word.value) for word in call.keywords}
            if "id" in words:
                hint = words.get("hint", "")
                rows[words["id"]] = (_text(call.args[0]), "" if hint == SOMETHING else hint)
    ordered = sorted(rows.items())
    return table(["check", "message", "hint"], [(code(name), *texts) for name, texts in ordered])


def notices() -> str:
    """Return the conditions that the dashboard, `top`, `doctor` and `health` tell of."""
    rows = [
        (code(word), _placeless(text.sentence), _placeless(text.remedy))
        for word, text in TEXTS.items()
    ]
    return table(["code", "sentence", "remedy"], rows)


def _placeless(text: str) -> str:
    return re.sub(r"\{\w+\}\.?", SOMETHING, text)


def _calls(name: str, folder: Path) -> Iterator[ast.Call]:
    """Yield the calls of that name in the modules of a folder, in a stable order."""
    for path in sorted(folder.rglob("*.py")):
        if f"{name}(" in (text := path.read_text()):  # To parse all of them takes seconds.
            yield from _calls_in(ast.parse(text), name)


def _calls_in(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_call and node.func.id == name:
            yield node


def _text(node: ast.expr, names: Mapping[str, ast.expr] = MappingProxyType({})) -> str:
    """Return the text that an expression makes; a place for what is not constant."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        text = "".join(_text(value, names) for value in node.values)
        return re.sub(rf"{SOMETHING}[.{SOMETHING}]*$", SOMETHING, text)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, names) + _text(node.right, names)
    if isinstance(node, ast.Name) and node.id in names:
        return _text(names[node.id])
    return SOMETHING
