"""Source files: where they are, and what stands in them."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

PYTHON = ".py"
KINDS = frozenset({PYTHON, ".css", ".html", ".js", ".md", ".po", ".svg", ".txt", ".xml"})


@dataclass(frozen=True, kw_only=True)
class Count:
    """The counts of one file."""

    lines: int
    words: int
    imports: int = 0
    classes: int = 0
    functions: int = 0
    modules: list[str] = field(default_factory=list)


def find_sources(root: Path) -> list[str]:
    """Return the paths of the source files below `root`, relative to it, in order."""
    found = (path for path in root.rglob("*") if path.suffix in KINDS and path.is_file())
    return sorted(path.relative_to(root).as_posix() for path in found)


def count_source(path: Path) -> Count:
    """Read one file. Raises what opening, decoding or parsing it raises."""
    text = read_source(path)
    count = Count(lines=_count_lines(text), words=len(text.split()))
    if path.suffix != PYTHON:
        return count
    nodes = list(ast.walk(ast.parse(text, filename=str(path))))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return replace(
        count,
        imports=len(imports),
        classes=sum(isinstance(node, ast.ClassDef) for node in nodes),
        functions=sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
        modules=sorted(module for node in imports for module in _modules(node)),
    )


def read_source(path: Path) -> str:
    """Return the text of a file, which is UTF-8 unless it is Python and says otherwise."""
    if path.suffix == PYTHON:
        with tokenize.open(path) as file:
            return file.read()
    return path.read_text(encoding="utf-8")


def _count_lines(text: str) -> int:
    """Count as editors do; `str.splitlines` would break lines at form feeds too."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def _modules(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    else:
        yield "." * node.level + (node.module or "")
