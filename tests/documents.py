"""The tables and the code in README.md and the pages of docs/."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.worker_process import ROOT

DOCS = ROOT / "docs"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    title: str
    text: str
    # Why it is not run, where the page says so.
    reason: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.*?) -->\n+)?"
    r'(?P<indent> *)```(?P<language>\S*)(?: title="(?P<title>[^"]*)")?\n'
    r"(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Page:
    """A page of Markdown."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def all_blocks(self) -> list[Block]:
        """Its fenced blocks of every language."""
        return [
            Block(
                page=self.path.name,
                line=self.text.count("\n", 0, found.start("text")),
                language=found["language"],
                title=found["title"] or "",
                text=found["text"],
                reason=found["reason"] or "",
            )
            for found in _BLOCK.finditer(self.text)
        ]

    def blocks(self, language: str) -> list[str]:
        """The fenced blocks of that language."""
        pattern = rf'^```{language}(?: title="[^"]*")?\n(.*?)^```'
        return re.findall(pattern, self.text, re.MULTILINE | re.DOTALL)

    def titled(self, title: str) -> str:
        """The fenced block of that title."""
        pattern = rf'^```\w+ title="{title}"\n(.*?)^```'
        [found] = re.findall(pattern, self.text, re.MULTILINE | re.DOTALL)
        return found

    def block(self, language: str, holding: str) -> str:
        """The first fenced block of that language that holds the text."""
        return next(block for block in self.blocks(language) if holding in block)

    def table(self, heading: str) -> list[list[str]]:
        """The cells of the first table below a heading, without its head."""
        sections = re.split(r"^#+ ", self.text, flags=re.MULTILINE)
        [found] = [part for part in sections if part.startswith(f"{heading}\n")]
        lines = [line for line in found.splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def page(name: str) -> Page:
    """A page of docs/, by the name of its file."""
    return Page(DOCS / name)


README = Page(ROOT / "README.md")
PAGES = [README, *(Page(path) for path in sorted(DOCS.glob("*.md")))]


def shown(value: Any) -> str:
    """A setting's default as the table writes it."""
    if value is None or value in ((), ""):
        return "none"
    if isinstance(value, timedelta):
        days, seconds = divmod(value.total_seconds(), 86_400)
        if days:
            return f"{days:g} day" + "s" * (days > 1)
        return f"{seconds:g} s"
    if isinstance(value, dict):
        return "`{" + ", ".join(f'"{key}": {_inside(kept)}' for key, kept in value.items()) + "}`"
    if isinstance(value, tuple):
        return f"`{json.dumps(value)}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    for unit, size in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if value >= size and value % size == 0:
            return f"{value // size} {unit}"
    return str(value)


def _inside(value: Any) -> str:
    """As it stands in what is code already."""
    return shown(value).strip("`")
