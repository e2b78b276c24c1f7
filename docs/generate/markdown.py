"""Tables of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; line breaks in a cell become spaces."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def code(text: object) -> str:
    """Return it as code."""
    return f"`{text}`"


def prose(text: str) -> str:
    """Return a docstring's first paragraph in one line; what would be taken for HTML is code."""
    paragraph = re.split(r"\n\s*\n", text.strip())[0]
    return re.sub(r"(?<!`)<([^>`]+)>", r"`<\1>`", " ".join(paragraph.split()))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
