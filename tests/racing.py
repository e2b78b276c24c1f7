"""Processes that do the same thing at the same moment, each with a connection of its own.

They are forked from one process that has loaded Django and has not connected yet: each would spend
half a second of the processor on that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.worker_process import ROOT, wait_until, worker_environment

STARTER = """
import os, pathlib, sys, time, traceback
import django
django.setup()
import taskqueue.control, tests.sample.tasks
from django.db import connection
program, folder, count = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])

def run(number):
    connection.ensure_connection()
    (folder / f"ready-{number}").touch()
    while not (folder / "open").exists():
        time.sleep(0.001)
    with (folder / f"answer-{number}").open("w") as sys.stdout:
        exec(program, {"number": number, "arguments": sys.argv[4:]})
    connection.close()

def race(number):
    try:
        run(number)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

racers = [os.fork() or race(number) for number in range(count)]
sys.exit(int(any([os.waitpid(racer, 0)[1] for racer in racers])))
"""


def race(program: str, folder: Path, count: int, *arguments: str) -> list[list[str]]:
    """Run the program in so many processes at once; return the words that each has printed.

    It knows its `number` and the `arguments`.
    """
    racers = subprocess.Popen(
        [sys.executable, "-c", STARTER, program, str(folder), str(count), *arguments],
        cwd=ROOT,
        env=worker_environment({}),
        start_new_session=True,
    )
    try:
        wait_until(lambda: len(list(folder.glob("ready-*"))) == count, timeout=120)
        (folder / "open").touch()
        assert racers.wait(240) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(racers.pid, signal.SIGKILL)
        racers.wait()
    return [(folder / f"answer-{number}").read_text().split() for number in range(count)]
