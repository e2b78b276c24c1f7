"""Measure taskqueue beside other task queues, and print or write the tables."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.brokers import Brokers
from benchmarks.peers.measuring import Failed, Measured
from benchmarks.peers.peers import PEERS, Peer, versions
from benchmarks.peers.report import write

LONGEST_RECOVERY = 90.0
"""Seconds after which the tasks of a killed worker are taken to wait for something else."""


def main() -> None:
    """Run what was asked for, the queues by turns."""
    arguments = _parser().parse_args()
    chosen = [peer for peer in PEERS if not arguments.only or peer.name in arguments.only]
    values: dict[str, dict[str, list[float]]] = {peer.name: defaultdict(list) for peer in chosen}
    once: dict[str, dict[str, Any]] = {peer.name: {} for peer in chosen}
    with Brokers() as brokers:
        said = [broker.version for broker in brokers.by_name.values()]
        surroundings = (
            f"Python {platform.python_version()}, {', '.join(said)}, {os.cpu_count()} CPUs,"
            f" {arguments.rounds} rounds, load {os.getloadavg()[0]:.1f} at the start"
        )
        _say(surroundings)
        for peer in list(chosen):
            if peer.broker not in brokers.by_name:
                _say(f"{peer.name}: left out, for there is no {peer.broker} here")
                chosen.remove(peer)
        for number in range(arguments.rounds):
            for peer in chosen:
                _round(peer, brokers, arguments, values[peer.name])
                _say(f"round {number + 1}: {peer.name}: {_last(values[peer.name])}")
        for peer in chosen:
            if peer.bodies_only:
                continue
            broker = brokers.by_name[peer.broker]
            try:
                with Measured(peer, broker, arguments.slots) as measured:
                    once[peer.name] |= measured.idle(arguments.samples, arguments.idle)
                with Measured(peer, broker, arguments.slots) as measured:
                    once[peer.name] |= measured.kill(4, LONGEST_RECOVERY)
            except Failed as error:
                _say(f"{peer.name}: {error}")
            _say(f"{peer.name}: {once[peer.name]}")
    result = {
        "surroundings": surroundings,
        "versions": versions(),
        "rounds": {name: dict(each) for name, each in values.items()},
        "once": once,
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")
    write(result, arguments.docs)


def _round(
    peer: Peer, brokers: Brokers, arguments: argparse.Namespace, values: dict[str, list[float]]
) -> None:
    """One value of each kind, each on an empty broker."""
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
        try:
            with Measured(peer, brokers.by_name[peer.broker], arguments.slots) as measured:
                values[name].append(getattr(measured, method)(*parameters))
        except Failed as error:
            _say(f"{peer.name}, {name}: {error}")


def _last(values: dict[str, list[float]]) -> str:
    return ", ".join(f"{name} {each[-1]:,.0f}/s" for name, each in values.items() if each)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    names: Sequence[str] = [peer.name for peer in PEERS]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, help=", ".join(names))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=1, help="of the tasks, for a short look")
    parser.add_argument("--slots", type=int, default=2, help="processes or threads of a worker")
    parser.add_argument("--samples", type=int, default=100, help="enqueues whose pick-up is timed")
    parser.add_argument("--idle", type=float, default=20, help="seconds of idleness")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values there")
    parser.add_argument(
        "--docs", type=Path, metavar="FOLDER", help="write the page and its charts there"
    )
    return parser


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
