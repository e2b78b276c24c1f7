"""Fail unless the wheel in the given folder holds every file of the package, data included."""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "taskqueue"


def main(folder: Path) -> int:
    [wheel] = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    missing = sorted(expected_names() - packed)
    strangers = sorted(name for name in packed if not is_ours(name))
    for name in missing:
        print(f"{wheel.name} lacks {name}")
    for name in strangers:
        print(f"{wheel.name} should not hold {name}")
    if not missing and not strangers:
        print(f"{wheel.name}: {len(packed)} files, complete")
    return 1 if missing or strangers else 0


def expected_names() -> set[str]:
    """Return every file of the package, among them py.typed, templates, migrations, languages."""
    files = {
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    return files | {
        "taskqueue/py.typed",
        "taskqueue/migrations/0001_initial.py",
        "taskqueue/locale/zh_Hans/LC_MESSAGES/django.po",
        "taskqueue/locale/zh_Hans/LC_MESSAGES/django.mo",
    }


def is_ours(name: str) -> bool:
    return name.startswith("taskqueue/") or name.partition("/")[0].endswith(".dist-info")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
