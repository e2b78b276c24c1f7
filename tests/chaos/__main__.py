"""The fault run: `python -m tests.chaos --help`. It exits with 1 if an invariant is violated."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import psutil

from tests.chaos.databases import DATABASES, make_template, remove
from tests.chaos.run import VERDICT, Plan, apart
from tests.chaos.verdict import HEADER, Verdict, row
from tests.proofs import PREFIX, forget_proofs

if TYPE_CHECKING:
    from tests.chaos.faults import Fault

QUICK_TASKS, FULL_TASKS = 400, 1350
QUICK_SEEDS, FULL_SEEDS = 1, 3
FORKING = multiprocessing.get_context("forkserver")
"""Runs are forked from a process that has imported all that each of them needs."""
LONGEST_RUN = 240
"""Seconds after which a run is taken to hang, beside one for so many tasks:"""
TASKS_A_SECOND = 20


def main() -> int:
    """Run what was asked for, and print the table."""
    arguments = _parse()
    signal.signal(signal.SIGTERM, _end)
    # A shell without job control lets what it starts with & ignore Ctrl-C, and so would workers.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault(PREFIX, f"taskqueue-chaos-{os.getpid()}-")
    if arguments.kill_matrix:
        return _run_kill_matrix(arguments)
    faults = _faults(arguments)
    if arguments.list:
        for name, fault in faults.items():
            databases = "/".join(sorted(fault.databases))
            print(f"{name:24} {databases:18} {fault.__doc__}\n{'':24} -> {fault.expectation}")
        return 0
    os.environ["TASKQUEUE_TEST_DATABASE"] = arguments.database
    FORKING.set_forkserver_preload(["tests.chaos.imported"])
    folder = Path(tempfile.mkdtemp(prefix="taskqueue-chaos-"))
    folder.chmod(0o755)
    try:
        make_template(arguments.database, folder / "template")
        plans = [
            Plan(
                fault=name,
                seed=seed,
                database=arguments.database,
                tasks=arguments.tasks,
                folder=str(folder / f"{name}-{seed}"),
                template=str(folder / "template"),
                duration=arguments.duration,
            )
            for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds)
            for name in faults
        ]
        return _run_all(plans, jobs=arguments.jobs)
    finally:
        forget_proofs()
        if arguments.keep:
            print(f"What the runs left is in {folder}")
        else:
            remove(folder / "template")
            shutil.rmtree(folder, ignore_errors=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--database", choices=sorted(DATABASES), default="postgresql")
    parser.add_argument("--full", action="store_true", help="every fault, with three seeds")
    parser.add_argument("--only", action="append", metavar="NAME", help="this fault; repeatable")
    parser.add_argument("--seeds", type=int, help="how many seeds for each fault")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--tasks", type=int, help="how many tasks in each run")
    parser.add_argument(
        "--duration", type=float, default=0.0, metavar="SECONDS",
        help="how long a fault lasts that can be told so: schedules",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2, help="how many runs side by side")
    parser.add_argument("--list", action="store_true", help="show the faults")
    parser.add_argument(
        "--kill-matrix", action="store_true", help="seed bugs instead, each of which must be caught"
    )
    parser.add_argument("--keep", action="store_true", help="keep logs, journals, histories")
    arguments = parser.parse_args()
    is_full = arguments.full
    arguments.seeds = arguments.seeds or (FULL_SEEDS if is_full else QUICK_SEEDS)
    arguments.tasks = arguments.tasks or (FULL_TASKS if is_full else QUICK_TASKS)
    return arguments


def _faults(arguments: argparse.Namespace) -> dict[str, type[Fault]]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.chaos.settings"
    import django

    django.setup()
    from tests.chaos.faults import FAULTS

    if unknown := set(arguments.only or ()) - FAULTS.keys():
        raise SystemExit(f"No fault is named {', '.join(unknown)}. See --list.")
    return {
        name: fault
        for name, fault in FAULTS.items()
        if arguments.database in fault.databases
        and (name in arguments.only if arguments.only else
             fault.is_quick or arguments.full or arguments.list)
    }  # fmt: skip


def _run_kill_matrix(arguments: argparse.Namespace) -> int:
    from tests.chaos.bugs import run_kill_matrix

    return 0 if run_kill_matrix(arguments.database, arguments.only, jobs=arguments.jobs) else 1


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _run_all(plans: Sequence[Plan], *, jobs: int) -> int:
    began = time.monotonic()
    print(HEADER, flush=True)
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(jobs) as executor:
        running = [executor.submit(_run, plan) for plan in plans]
        try:
            for future in as_completed(running):
                verdicts.append(future.result())
                print(row(verdicts[-1]), flush=True)
                if verdicts[-1].note:
                    print(f"  {verdicts[-1].note}", flush=True)
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            _end_running()
            raise
    text, has_failed = summary(verdicts, time.monotonic() - began)
    print(text, flush=True)
    return int(has_failed)


def summary(verdicts: Sequence[Verdict], seconds: float) -> tuple[str, bool]:
    """What stands below the table, and whether anything was violated."""
    bad = [verdict for verdict in verdicts if not verdict.is_good]
    lines: list[str] = []
    for verdict in bad:
        lines += ["", f"{verdict.fault}, seed {verdict.seed}: {verdict.facts}"]
        lines += [f"  - {problem}" for problem in verdict.problems]
    skipped = sorted({verdict.fault for verdict in verdicts if verdict.skipped})
    worst = max((verdict.takeover_p99 or 0.0 for verdict in verdicts), default=0.0)
    lines += [
        "",
        f"{len(verdicts)} runs, {sum(verdict.tasks for verdict in verdicts)} tasks,"
        f" {sum(verdict.lost for verdict in verdicts)} lost,"
        f" {sum(verdict.doubled for verdict in verdicts)} doubled,"
        f" {sum(verdict.stale for verdict in verdicts)} stale writes,"
        f" longest takeover p99 {worst:.1f} s, {seconds:.0f} s in all"
        f"{'; skipped: ' + ', '.join(skipped) if skipped else ''}",
        "VIOLATIONS" if bad else "No violation.",
    ]
    return "\n".join(lines), bool(bad)


_processes: set[ForkServerProcess] = set()


def _run(plan: Plan) -> Verdict:
    folder = Path(plan.folder)
    folder.mkdir()
    folder.chmod(0o755)
    process = FORKING.Process(target=apart, args=(plan.text(), str(folder / "run.log")))
    process.start()
    _processes.add(process)
    process.join(LONGEST_RUN + plan.duration + plan.tasks / TASKS_A_SECOND)
    if process.is_alive():
        process.terminate()
        process.join(30)
        _kill_tree(process)
    _processes.discard(process)
    if not (folder / VERDICT).exists():
        said = (folder / "run.log").read_text(errors="replace")[-3000:]
        problem = f"the run ended with {process.exitcode} and without a verdict: {said}"
        return Verdict(fault=plan.fault, seed=plan.seed, problems=[problem])
    return Verdict.load(folder / VERDICT)


def _end_running() -> None:
    """Have the runs end their workers and servers, and wait for that."""
    for process in list(_processes):
        process.terminate()
    for process in list(_processes):
        process.join(30)
        _kill_tree(process)


def _kill_tree(process: ForkServerProcess) -> None:
    """End a run that does not end itself, and all that it started."""
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(process.pid)
        for each in [*parent.children(recursive=True), parent]:
            with suppress(psutil.NoSuchProcess):
                each.kill()
    process.join()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Interrupted; all runs were ended.")
