"""The code of another commit, measured with this commit's benchmark."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from benchmarks.processes import ROOT

BASELINE = "d117eb2"
"""The commit that some targets are ratios to."""


def this_revision() -> str:
    """The commit of this code, for a report; "?" outside of a checkout."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=7"]
    done = subprocess.run(git, check=False, capture_output=True, text=True)
    return done.stdout.strip() or "?"


def tree_of(revision: str, folder: Path) -> Path:
    """Put that commit's `taskqueue` into the folder, and this benchmark beside it."""
    folder.mkdir()
    git = ["git", "-C", str(ROOT), "archive", revision, "taskqueue"]
    archive = subprocess.run(git, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    ignored = shutil.ignore_patterns("__pycache__", "peers")
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks", ignore=ignored)
    return folder
