"""Measure taskqueue and other task queues, and print or write the tables."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from benchmarks.harness import in_turn
from benchmarks.peers.brokers import Brokers
from benchmarks.peers.measuring import Measured
from benchmarks.peers.peers import PEERS, Peer, versions
from benchmarks.peers.report import write
from benchmarks.revision import this_revision

Values = dict[str, list[float | None]]
LONGEST_RECOVERY = 40.0
"""Seconds after which the tasks of a killed worker are taken to wait for something else."""


def main() -> None:
    """Run what was asked for, the queues by turns."""
    arguments = _parser().parse_args()
    signal.signal(signal.SIGTERM, _end_as_ctrl_c_does)
    chosen = [peer for peer in PEERS if not arguments.only or peer.name in arguments.only]
    values: dict[str, Values] = {peer.name: defaultdict(list) for peer in chosen}
    failures: dict[str, dict[str, str]] = {peer.name: {} for peer in chosen}
    once: dict[str, dict[str, Any]] = {peer.name: {} for peer in chosen}
    with Brokers() as brokers:
        said = [broker.version for broker in brokers.by_name.values()]
        surroundings = (
            f"taskqueue at {this_revision()}, {', '.join(said)}, {os.cpu_count()} CPUs,"
            f" {arguments.slots} slots a worker, {arguments.rounds} rounds,"
            f" load {os.getloadavg()[0]:.1f} at the start"
        )
        _say(surroundings)
        for peer in list(chosen):
            if peer.broker not in brokers.by_name:
                _say(f"{peer.name}: left out, for there is no {peer.broker} here")
                chosen.remove(peer)
        result = {
            "surroundings": surroundings,
            "versions": versions(),
            "rounds": values,
            "once": once,
            "failures": failures,
        }
        for number in range(arguments.rounds):
            began = time.monotonic()
            for peer in in_turn(chosen, number):
                _round(peer, brokers, arguments, values[peer.name], failures[peer.name])
                _say(f"round {number + 1}: {peer.name}: {_last(values[peer.name])}")
            _say(f"round {number + 1}: {time.monotonic() - began:.0f} s")
            _keep(result, arguments)
        for peer in chosen:
            if peer.bodies_only:
                continue
            broker = brokers.by_name[peer.broker]
            noting, slots = _noting("idle", peer, failures[peer.name]), arguments.slots
            with noting, Measured(peer, broker, slots) as measured:
                once[peer.name] |= measured.idle(arguments.samples, arguments.idle)
            noting = _noting("kill -9", peer, failures[peer.name])
            with noting, Measured(peer, broker, slots) as measured:
                once[peer.name] |= measured.kill(4, LONGEST_RECOVERY)
            _say(f"{peer.name}: {once[peer.name]}")
            _keep(result, arguments)
    write(result, arguments.docs)


def _end_as_ctrl_c_does(signum: int, frame: FrameType | None) -> NoReturn:
    """Leave no process behind: workers live in sessions of their own."""
    raise KeyboardInterrupt


def _keep(result: Mapping[str, Any], arguments: argparse.Namespace) -> None:
    """Write what there is so far: a run that is broken off loses nothing."""
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


@contextmanager
def _noting(name: str, peer: Peer, failures: dict[str, str]) -> Iterator[None]:
    """Note what goes wrong, whatever it is: one queue's trouble is not the end of the run."""
    try:
        yield
    except Exception as error:
        failures[name] = str(error) or type(error).__name__
        _say(f"{peer.name}, {name}: {failures[name]}")


def _round(
    peer: Peer,
    brokers: Brokers,
    arguments: argparse.Namespace,
    values: Values,
    failures: dict[str, str],
) -> None:
    """One value of each kind, each on an empty broker; None where it failed, now or before."""
    share = arguments.share
    measures: dict[str, tuple[str, tuple[Any, ...]]] = {
        "one worker": ("drain", (int(peer.tasks * share), 1)),
        "two workers": ("drain", (int(peer.tasks * share), 2)),
    }
    if not peer.bodies_only:
        measures |= {
            "enqueue one": ("enqueue", ("one", int(1000 * share))),
            "enqueue many": ("enqueue", ("many", int(10_000 * share))),
        }
    for name, (method, parameters) in measures.items():
        values[name].append(None)
        if name in failures:
            continue
        broker, noting = brokers.by_name[peer.broker], _noting(name, peer, failures)
        with noting, Measured(peer, broker, arguments.slots) as measured:
            values[name][-1] = getattr(measured, method)(*parameters)


def _last(values: Values) -> str:
    last = {name: each[-1] for name, each in values.items()}
    return ", ".join(
        f"{name} failed" if rate is None else f"{name} {rate:,.0f}/s" for name, rate in last.items()
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    names: Sequence[str] = [peer.name for peer in PEERS]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, help=", ".join(names))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=1, help="of the tasks, for a short look")
    parser.add_argument("--slots", type=int, default=2, help="processes or threads of a worker")
    parser.add_argument("--samples", type=int, default=60, help="enqueues whose pick-up is timed")
    parser.add_argument("--idle", type=float, default=10, help="seconds of idleness")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values there")
    parser.add_argument(
        "--docs", type=Path, metavar="FOLDER", help="write the page and its charts there"
    )
    return parser


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
