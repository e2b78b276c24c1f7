"""One scenario of the kill matrix, in this process: `python -m tests.chaos.bugs.run`."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import django


def main(scenario: str, folder: Path, names: Sequence[str]) -> None:
    """Print a row as JSON for the run without a bug, and for that with each of these."""
    django.setup()
    from tests.chaos.bugs.catalogue import BUGS

    for name in ["", *names]:
        began = time.monotonic()
        found, details = _found(scenario, folder / (name or "clean"), name)
        invariant = BUGS[name].invariant if name else None
        row = (scenario, name, invariant, found, time.monotonic() - began, details)
        print(json.dumps(row), flush=True)


def _found(scenario: str, folder: Path, name: str) -> tuple[list[int], str]:
    from tests.chaos.bugs.catalogue import BUGS, SCENARIOS
    from tests.chaos.bugs.trial import Trial, clear_tables
    from tests.chaos.checker import check

    clear_tables()
    folder.mkdir()
    folder.chmod(0o755)
    if name:
        BUGS[name].drop_guards()
    trial = Trial(folder, name)
    try:
        SCENARIOS[scenario](trial)
        trial.pause_all()
        violations = check(trial.history())
    except AssertionError as error:
        return [0], f"{error}\n{trial.told()}"[-4000:]
    finally:
        trial.close()
    shown: Counter[int] = Counter()
    lines = []
    for violation in violations:
        shown[violation.invariant] += 1
        if shown[violation.invariant] <= 2:
            lines.append(str(violation)[:600])
    if (not name and violations) or (name and BUGS[name].invariant not in shown):
        lines.append(trial.told()[-5000:])
    shutil.rmtree(folder, ignore_errors=True)
    return sorted(shown), "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
