"""Makes the parts of the documentation that the code tells: `make reference`.

A part stands in a page between `<!-- generated: NAME -->` and `<!-- end of NAME -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from docs.generate.commands import subcommands
from docs.generate.errors import checks, exceptions, notices, refusals
from docs.generate.metrics import queue_metrics, worker_metrics
from docs.generate.options import uses
from docs.generate.python import public_names
from docs.generate.rest import addresses
from docs.generate.signals import signals

FOLDER = Path(__file__).resolve().parent.parent
PARTS: dict[str, Callable[[], str]] = {
    "addresses": addresses,
    "checks": checks,
    "exceptions": exceptions,
    "notices": notices,
    "public names": public_names,
    "queue metrics": queue_metrics,
    "refusals": refusals,
    "signals": signals,
    "subcommands": subcommands,
    "uses of options": uses,
    "worker metrics": worker_metrics,
}
_PART = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def pages() -> dict[Path, str]:
    """Return the pages with generated parts, as they should be."""
    texts: dict[Path, str] = {}
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text()
        if _PART.search(text):
            texts[path] = _PART.sub(_filled, text)
    return texts


def _filled(part: re.Match[str]) -> str:
    before, name, after = part.groups()
    return f"{before}\n{PARTS[name]().strip()}\n\n{after}"
