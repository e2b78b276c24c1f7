"""Measure, and print a table of what was reached."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from benchmarks.figures import Figure, table
from benchmarks.harness import DEFAULT, FULL, QUICK, Bench, say
from benchmarks.measurements import MEASUREMENTS


def main() -> None:
    """Run the measurements that were asked for."""
    arguments = _parser().parse_args()
    signal.signal(signal.SIGTERM, _end_as_ctrl_c_does)
    figures: list[Figure] = []
    bench = Bench(
        arguments.size,
        fsync=not arguments.no_fsync,
        synchronous_commit=not arguments.asynchronous_commit,
    )
    with bench:
        say(_surroundings(bench))
        for name in arguments.only or MEASUREMENTS:
            began = time.monotonic()
            say(f"{name} ...")
            figures += MEASUREMENTS[name](bench)
            say(f"{name}: {time.monotonic() - began:.0f} s")
    print(table(figures))
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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values there")
    parser.add_argument("--no-fsync", action="store_true", help="PostgreSQL with fsync off")
    parser.add_argument(
        "--asynchronous-commit", action="store_true", help="PostgreSQL with synchronous_commit off"
    )
    return parser


def _surroundings(bench: Bench) -> str:
    load = os.getloadavg()[0]
    return (
        f"Python {platform.python_version()}, {bench.server.query('SHOW server_version')} of "
        f"PostgreSQL, fsync {bench.server.query('SHOW fsync')}, synchronous_commit "
        f"{bench.server.query('SHOW synchronous_commit')}, {os.cpu_count()} CPUs, load {load:.1f}"
    )


if __name__ == "__main__":
    main()
