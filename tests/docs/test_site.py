"""The documentation is built as a site without a warning, and the README stays a landing page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import DOCS, README
from tests.worker_process import ROOT


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    built = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"),
            *("--builder", "html", "--doctree-dir", str(tmp_path / "doctrees")),
            *(str(DOCS), str(tmp_path / "site")),
        ],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (built.returncode, built.stderr) == (0, "")
    pages = {path.stem for path in DOCS.glob("*.md")}
    assert pages <= {path.stem for path in (tmp_path / "site").glob("*.html")}


def test_the_readme_is_a_landing_page() -> None:
    assert len(README.text.splitlines()) <= 150
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README.text)
    assert [link for link in links if not (ROOT / link).is_file()] == []
