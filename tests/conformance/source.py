"""Django's tests, which its wheel lacks: from its source distribution, fetched once with pip."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

DIRECTORY_VARIABLE = "TASKQUEUE_DJANGO_SOURCE"
FOLDER = ("tests", "tasks")
PATIENCE_SECONDS = 600


class Unobtainable(Exception):
    """Django's source distribution is not to be had here."""


def tests_of_django(version: str) -> Path:
    """The folder `tests` of that version of Django. Raises `Unobtainable`."""
    if named := os.environ.get(DIRECTORY_VARIABLE):
        root = Path(named).absolute()
    else:
        root = _cache() / f"django-{version}"
        if not root.exists():
            _fetch(version, root)
    if not root.joinpath(*FOLDER).is_dir():
        raise Unobtainable(f"{root} holds no {'/'.join(FOLDER)}.")
    return root / FOLDER[0]


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "django-taskqueue"


def _fetch(version: str, root: Path) -> None:
    root.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=root.parent) as scratch:
        _download(version, Path(scratch))
        archives = list(Path(scratch).glob("*.tar.gz"))
        if len(archives) != 1:
            raise Unobtainable(f"pip brought {archives} in place of one archive.")
        _unpack(archives[0], Path(scratch) / "unpacked")
        (Path(scratch) / "unpacked").rename(root)


def _download(version: str, target: Path) -> None:
    command = [
        *(sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet"),
        # The tests of a newer Django are read by an older Python too.
        *("--no-deps", "--no-binary", ":all:", "--ignore-requires-python"),
        *("--dest", str(target), f"Django=={version}"),
    ]
    try:
        pip = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unobtainable(f"pip took longer than {PATIENCE_SECONDS} s.") from None
    if pip.returncode != 0:
        raise Unobtainable(f"pip download failed:\n{pip.stderr.strip()}")


def _unpack(archive: Path, target: Path) -> None:
    """Unpack the tests of tasks alone, without the archive's outermost folder."""
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            parts = Path(member.name).parts[1:]
            if parts[: len(FOLDER)] == FOLDER:
                member.name = str(Path(*parts))
                tar.extract(member, target, filter="data")
