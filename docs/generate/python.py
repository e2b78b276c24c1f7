"""The public names of the package, with their signatures and what their docstrings tell."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from importlib import import_module
from typing import Any

from docs.generate.markdown import code, prose, table

MODULES = (
    "taskqueue", "taskqueue.control", "taskqueue.schedules", "taskqueue.workflows",
    "taskqueue.events", "taskqueue.webhooks", "taskqueue.alerts", "taskqueue.progress",
    "taskqueue.results", "taskqueue.testing",
)  # fmt: skip
CLASSES = {
    "taskqueue": ("Definition", "Context"),
    "taskqueue.results": ("TaskResult",),
    "taskqueue.workflows": ("Workflow",),
}
"""Those whose methods and properties are told too."""
OF_ACTS = ("by", "reason", "seen")
"""Arguments that everything done by hand takes; the page tells of them once."""
MADE = {
    "AttemptError", "AttemptRecord", "BulkOutcome", "Builder", "Cancellation", "Canvas",
    "Condition", "Context", "Definition", "FanOut", "LogLine", "Progress", "Reference", "Run",
    "Secret", "StepCall", "StepHandle", "Synced", "TaskResult", "Workflow",
}  # fmt: skip
"""Classes whose instances projects are given, and do not make."""
INTERNAL = {
    "announce_end", "announce_start", "callee", "compile", "context_for", "encode", "has_key",
    "know_arguments", "limit_plan", "limits", "loaded", "of", "place", "read_all", "signature",
    "snapshot", "stored", "unique_scope", "without_key",
}  # fmt: skip
"""Members that are for the package itself."""
OWN = ("enqueue", "enqueue_many", "errors_of")
"""Functions of `taskqueue.results` that are called through a definition."""
_RAISES = re.compile(r"\bRaises\s`.+?\.(?=\s|$)", re.DOTALL)


def public_names() -> str:
    """Return the names of each module, the exceptions left out."""
    parts = []
    for name in MODULES:
        module = import_module(name)
        shown = [(each, getattr(module, each)) for each in module.__all__ if each not in OWN]
        rows = [(_call(each, value), _told(value)) for each, value in shown if _is_told(value)]
        parts += [f"## {name}", table(["name", "meaning"], rows)]
        for each in CLASSES.get(name, ()):
            parts += [f"### {each}", table(["member", "meaning"], _members(getattr(module, each)))]
    return "\n\n".join(parts)


def _is_told(value: Any) -> bool:
    is_class = inspect.isclass(value)
    return callable(value) and not (is_class and issubclass(value, BaseException | Enum))


def _members(kind: type) -> Iterator[tuple[str, str]]:
    for name, value in sorted(inspect.getmembers_static(kind)):
        if name.startswith("_") or name in INTERNAL:
            continue
        if isinstance(value, property | cached_property):
            yield code(name), _told(value)
        elif isinstance(value, staticmethod | classmethod) or inspect.isfunction(value):
            yield _call(name, getattr(kind, name)), _told(value)


def _told(value: Any) -> str:
    """Return the first paragraph of its docstring, and what later ones say that it raises."""
    first, _, rest = (inspect.getdoc(value) or "").partition("\n\n")
    return prose(" ".join([first, *_RAISES.findall(rest)]))


def _call(name: str, value: Any) -> str:
    """Return how it is called, without annotations."""
    if name in MADE:
        return code(name)
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return code(name)
    told: list[str] = []
    kinds = inspect.Parameter
    has_star = False
    for each in parameters:
        if each.name in (*OF_ACTS, "self"):
            continue
        if each.kind is kinds.KEYWORD_ONLY and not has_star:
            told.append("*")
            has_star = True
        has_star |= each.kind is kinds.VAR_POSITIONAL
        stars = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is kinds.empty else f"={_default(each.default)}"
        told.append(f"{stars}{each.name}{default}")
    return code(f"{name}({', '.join(told)})")


def _default(value: Any) -> str:
    is_plain = value is None or isinstance(value, bool | int | float | str) or value == ()
    return repr(value) if is_plain else "…"
