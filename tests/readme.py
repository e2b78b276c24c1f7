"""What README.md says: its tables, its diagram, its code."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

from tests.worker_process import ROOT

TEXT = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The fenced blocks of that language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def table(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = re.split(r"^##+ ", TEXT, flags=re.MULTILINE)
    [found] = [part for part in section if part.startswith(f"{heading}\n")]
    lines = [line for line in found.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


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
