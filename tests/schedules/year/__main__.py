"""A year of cron: `python -m tests.schedules.year --help`. It exits with 1 at a violation."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tests.chaos.databases import DATABASES, NAME, Database, remove


def main() -> int:
    """Race, compare, and print what there was."""
    arguments = _parse()
    signal.signal(signal.SIGTERM, _end)
    folder = Path(tempfile.mkdtemp(prefix="taskqueue-year-"))
    folder.chmod(0o755)
    try:
        with DATABASES[arguments.database](folder) as database:
            if database.server is not None:
                database.server.create_database(NAME)
            _open(database)
            return _run(arguments)
    finally:
        remove(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.schedules.year", description=__doc__)
    parser.add_argument("--database", choices=sorted(DATABASES), default="postgresql")
    parser.add_argument("--full", action="store_true", help="all rules in all zones, all year")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--leap-hours", type=float, default=240.0, metavar="HOURS",
        help="how far time leaps, on average; the less, the longer a full race takes",
    )  # fmt: skip
    return parser.parse_args()


def _open(database: Database) -> None:
    os.environ.update(database.environment())
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _run(arguments: argparse.Namespace) -> int:
    from django.db import connection

    from tests.schedules.year.checking import check
    from tests.schedules.year.plans import full_plan, small_plan
    from tests.schedules.year.race import Race, create_schedules

    seed = arguments.seed
    if arguments.full:
        plan = full_plan(seed, leap_hours=arguments.leap_hours)
    else:
        plan = small_plan(seed)
    print(f"seed {seed}, {len(plan.entries)} schedules, on {arguments.database}", flush=True)
    ids = create_schedules(plan)
    facts = Race(plan, report=lambda text: print(text, flush=True)).run()
    tally = check(plan, ids)
    connection.close()
    print(", ".join(f"{name} {value}" for name, value in asdict(facts).items()))
    counted = {name: value for name, value in asdict(tally).items() if name != "violations"}
    print(", ".join(f"{name} {value}" for name, value in counted.items()))
    for text in tally.violations:
        print(f"  - {text}")
    is_good = not tally.violations and not facts.errors and not facts.ended_with
    print("Each nominal time once." if is_good else "VIOLATIONS")
    return 0 if is_good else 1


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
