"""Run the measurements, and print a table of the figures."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

from benchmarks.figures import Figure, table
from benchmarks.harness import DEFAULT, FULL, QUICK, Bench, say
from benchmarks.measurements import MEASUREMENTS, SIDE_BY_SIDE
from benchmarks.revision import this_revision
from taskqueue.engine.sessions import PLANNING

SHOWN = (
    *("server_version", "fsync", "synchronous_commit", "autovacuum", "autovacuum_naptime"),
    *("shared_buffers", "max_wal_size", "checkpoint_timeout"),
)
PLANS = [f"{name} {value}" for name, value in PLANNING.items()]


def main() -> None:
    """Run the measurements that were asked for."""
    arguments = _parser().parse_args()
    signal.signal(signal.SIGTERM, _end_as_ctrl_c_does)
    figures: list[Figure] = []
    size = arguments.size
    if arguments.rounds:
        size = replace(size, rounds=arguments.rounds)
    bench = Bench(
        size,
        against=arguments.against,
        fsync=not arguments.no_fsync,
        synchronous_commit=not arguments.asynchronous_commit,
    )
    with bench:
        surroundings = _surroundings(bench)
        say(surroundings)
        for name in arguments.only or MEASUREMENTS:
            began = time.monotonic()
            say(f"{name} ...")
            figures += MEASUREMENTS[name](bench)
            say(f"{name}: {time.monotonic() - began:.0f} s")
    print(f"{surroundings}\n\n{table(figures)}")
    if arguments.json:
        arguments.json.write_text(json.dumps([each.as_json() for each in figures], indent=2) + "\n")


def _end_as_ctrl_c_does(signum: int, frame: FrameType | None) -> NoReturn:
    """Leave no process behind."""
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", dest="size", action="store_const", const=QUICK, default=DEFAULT,
        help="a small run, to see that it works",
    )  # fmt: skip
    size.add_argument(
        "--full", dest="size", action="store_const", const=FULL, default=DEFAULT,
        help="with 10,000,000 finished tasks: takes minutes more, and some 10 GB of disk",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=list(MEASUREMENTS),
        help=f"some of: {', '.join(MEASUREMENTS)}",
    )  # fmt: skip
    parser.add_argument(
        "--against", metavar="REVISION",
        help=f"also measure the code of that commit, in the same rounds: {', '.join(SIDE_BY_SIDE)}",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, metavar="N", help="instead of 5")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values there")
    parser.add_argument("--no-fsync", action="store_true", help="PostgreSQL with fsync off")
    parser.add_argument(
        "--asynchronous-commit", action="store_true", help="PostgreSQL with synchronous_commit off"
    )
    return parser


def _surroundings(bench: Bench) -> str:
    load = os.getloadavg()[0]
    server = ", ".join(f"{name} {bench.server.query(f'SHOW {name}')}" for name in SHOWN)
    against = f", against {bench.against}" if bench.against else ""
    return (
        f"taskqueue at {this_revision()}, Python {platform.python_version()},"
        f" PostgreSQL {server}, {os.cpu_count()} CPUs,"
        f" load {load:.1f}, {bench.size.rounds} rounds{against}.\n"
        f"Sessions of workers and of raw loops: {', '.join(PLANS)}.\n"
        "The raw loop claims 100 and records 100, each in a transaction of its own, on one"
        " connection; a worker of PostgreSQL records on a second one beside its claims."
    )


if __name__ == "__main__":
    main()
