"""The documentation as a site, built by Sphinx: `make docs`. The pages read on GitHub too.

The README is the first page. What it links to in `docs/` stands beside it here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

project = "taskqueue"
author = "The taskqueue developers"
copyright = "The taskqueue developers"
version = release = re.findall(
    r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
)[0]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["deployment", "metrics", "screenshots", "images"]
nitpicky = True
# Headings down to this level can be linked to, by the names that GitHub gives them.
myst_heading_anchors = 4
suppress_warnings = [
    # Sessions of a shell and abridged answers are highlighted as far as they can be read.
    "misc.highlighting_failure",
]

html_theme = "furo"
html_title = f"taskqueue {version}"
html_copy_source = False
html_show_sphinx = False


def setup(app: Any) -> None:
    """Let the index and the changelog be read from the files at the top of the repository."""
    app.connect("source-read", _read_outside)


def _read_outside(app: Any, docname: str, source: list[str]) -> None:
    if docname == "index":
        source[0] = _within_docs((ROOT / "README.md").read_text()) + "\n" + source[0]
    elif docname == "changelog":
        source[0] = _within_docs((ROOT / "CHANGELOG.md").read_text())


def _within_docs(text: str) -> str:
    """Return the text with its links as they are from within `docs/`."""
    text = text.replace("](CHANGELOG.md)", "](changelog.md)")
    return re.sub(r"\]\(docs/", "](", text)
