"""The signals, from the comments in their module."""

from __future__ import annotations

import re
from pathlib import Path

from docs.generate.markdown import code, table
from taskqueue import signals as module

_SIGNAL = re.compile(r"((?:^#: .*\n)+)^(\w+) = Signal", re.MULTILINE)


def signals() -> str:
    """Return the signals with what their comments tell."""
    text = Path(module.__file__).read_text()
    rows = [
        (code(name), " ".join(line.removeprefix("#: ") for line in comment.splitlines()))
        for comment, name in _SIGNAL.findall(text)
    ]
    return table(["signal", "sent"], rows)
