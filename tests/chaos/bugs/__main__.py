"""The kill matrix alone: `python -m tests.chaos.bugs --help`."""

from __future__ import annotations

import argparse
import sys

from tests.chaos.bugs import run_kill_matrix

parser = argparse.ArgumentParser(prog="python -m tests.chaos.bugs", description=__doc__)
parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
parser.add_argument("--only", action="append", metavar="NAME", help="this bug; repeatable")
parser.add_argument("--jobs", type=int, default=2, help="how many runs side by side")
arguments = parser.parse_args()
sys.exit(0 if run_kill_matrix(arguments.database, arguments.only, jobs=arguments.jobs) else 1)
