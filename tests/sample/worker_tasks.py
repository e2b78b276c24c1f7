"""Further tasks, for the tests of worker processes."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import threading
import time
from pathlib import Path

from django.db import transaction

from taskqueue import Context, Fixed, MemoryExceeded, Stopped, current, task
from tests.sample.models import Effect

_kept: list[bytes] = []


@task
async def raise_exit_async(class_name: str) -> None:
    """Raises on the event loop what usually ends a program."""
    raise {
        "SystemExit": SystemExit,
        "KeyboardInterrupt": KeyboardInterrupt,
        "GeneratorExit": GeneratorExit,
    }[class_name]("ended")


@task(timeout=0.3)
async def wait_for_ever_async() -> None:
    """Never ends by itself, on the event loop."""
    import asyncio

    await asyncio.Event().wait()


@task(timeout=0.3, max_attempts=2, backoff=Fixed(0))
def hang_once() -> int:
    """Runs out of time in its first attempt only."""
    while current().attempt == 1:
        pass
    return current().attempt


@task(takes_context=True, crash_delay=0)
def crash_until(context: Context, attempt: int) -> int:
    """Takes its process down until the given attempt."""
    if context.attempt < attempt:
        os._exit(1)
    return context.attempt


@task(takes_context=True, crash_delay=0, max_crashes=5)
def count_through_kills(context: Context, times: int) -> list[int]:
    """Counts its attempts in a checkpoint, and kills its process in all but the last."""
    attempts = [*(context.checkpoint or []), context.attempt]
    context.save_checkpoint(attempts)
    if len(attempts) < times:
        os.kill(os.getpid(), signal.SIGKILL)
    return attempts


@task
def keep_memory(megabytes: int) -> int:
    """Leaks."""
    _kept.append(b"x" * (megabytes * 1_000_000))
    return os.getpid()


@task(max_memory=400, max_attempts=2, backoff=Fixed(0))
def grow_once(stubbornly: bool) -> int:
    """Takes too much memory at its first attempt; stubbornly it goes on when it is interrupted."""
    if current().attempt == 1:
        kept = [b"x" * 700_000_000]
        while kept:
            try:
                time.sleep(60)
            except MemoryExceeded:
                if not stubbornly:
                    raise
    return os.getpid()


@task
def hold_write_lock(seconds: float) -> float:
    """Keeps SQLite's write lock, so that nobody else can write."""
    with transaction.atomic():
        mark_here("held the lock")
        time.sleep(seconds)
    return seconds


@task(atomic=True)
def act_after_commit(path: str, seconds: float) -> str:
    """Takes its time in a hook behind its commit, then appends to the file."""

    def act() -> None:
        time.sleep(seconds)
        append(path, "acted")

    transaction.on_commit(act)
    return "committed"


@task
def work(path: str, seconds: float) -> int:
    """Appends when it starts and when it ends."""
    append(path, "start")
    time.sleep(seconds)
    append(path, "end")
    return current().attempt


@task
async def work_async(path: str, seconds: float) -> int:
    """As `work`, on the event loop."""
    import asyncio

    append(path, "start")
    await asyncio.sleep(seconds)
    append(path, "end")
    return current().attempt


@task
def sleep_unless_stopped(seconds: float) -> str:
    """Sleeps in one call, and cleans up when it is interrupted."""
    try:
        time.sleep(seconds)
    except Stopped:
        mark_here("cleaned up")
        raise
    return "slept"


@task
def finish_when_asked() -> str:
    """Sees that it is asked to stop, and returns as if it had not been."""
    while not current().stop_requested:
        time.sleep(0.01)
    return "done all the same"


@task(atomic=True)
def finish_atomically_when_asked() -> str:
    """The same in a transaction with its success."""
    mark_here("atomic")
    while not current().stop_requested:
        time.sleep(0.01)
    return "done all the same"


def append(path: str, text: str) -> None:
    """One line with the task, the attempt, the process and the moment, in one write."""
    line = f"{current().task_id} {current().attempt} {os.getpid()} {time.monotonic()} {text}\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def mark_here(note: str) -> None:
    """An effect in the database."""
    from tests.sample.models import Effect

    Effect.objects.create(task_id=current().task_id, attempt=current().attempt, note=note)


@task
def meet(path: str, paths: list[str]) -> int:
    """Ends once all the others have come."""
    append(path, "here")
    while not all(os.path.exists(each) for each in paths):
        time.sleep(0.01)
    return os.getpid()


@task(pool="thread", per_slot=5, timeout=60)
def meet_in_threads(path: str, paths: list[str]) -> int:
    """Returns its process once as many run at the same time; without paths, hangs."""
    Path(path).touch()
    while not paths or not all(Path(other).exists() for other in paths):
        time.sleep(0.01)
    mark_here(path)
    return os.getpid()


@task(pool="process")
def run_in_process() -> str:
    """Is left alone by workers whose bodies run in threads."""
    return threading.current_thread().name


@task
async def meet_async(path: str, paths: list[str]) -> int:
    """As `meet`, on the event loop."""
    import asyncio

    append(path, "here")
    while not all(os.path.exists(each) for each in paths):
        await asyncio.sleep(0.01)
    return os.getpid()


@task
def sleep_once(path: str, seconds: float) -> int:
    """Sleeps in its first attempt only."""
    append(path, "start")
    if current().attempt == 1:
        time.sleep(seconds)
    return current().attempt


@task
def break_connection() -> None:
    """Leaves a connection in a failed transaction, or with its session gone."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        cursor.execute("BEGIN")
        cursor.execute("SELECT no_such_column")


@task
def end_own_session() -> str:
    """Has the server end the session of its process, and returns too much for the worker to read.

    Django does not know it: another connection tells the server to.
    """
    from django.db import connection

    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 30000)", [pid])
    other.close()
    return "x" * 10_000


@task
def leave_thread() -> None:
    """Starts a thread that never ends."""
    import threading

    threading.Thread(target=threading.Event().wait).start()


@task(crash_delay=1)
def beat(path: str, until: str) -> int:
    """Appends ten times a second until a file appears."""
    append(path, "start")
    while not os.path.exists(until):
        append(path, "beat")
        time.sleep(0.1)
    append(path, "end")
    return current().attempt


@task(takes_context=True, max_attempts=20, backoff=Fixed(0.5), crash_delay=0.5, max_crashes=50)
def work_hard(context: Context, path: str, seconds: float) -> int:
    """Uses the database before and after some work, and is retried when that is away."""
    append(path, "start")
    mark_here("began")
    time.sleep(seconds)
    mark_here("ended")
    return context.attempt


@task(atomic=True, max_attempts=20, backoff=Fixed(0.5), crash_delay=0.5, max_crashes=50)
def work_atomically(path: str, seconds: float) -> int:
    """Leaves one effect with its success."""
    append(path, "start")
    mark_here("atomic")
    time.sleep(seconds)
    return current().attempt


@task(unique_key=lambda path, key: f"held:{key}")
def work_alone(path: str, key: str) -> str:
    """Holds its key while it runs."""
    append(path, f"enter {key}")
    time.sleep(0.02)
    append(path, f"leave {key}")
    return key


@task
def hold_interpreter(seconds: float) -> None:
    """Keeps the interpreter's lock for that long, in one call of a C function."""
    # PyDLL calls with the lock held, unlike CDLL.
    ctypes.PyDLL(None).sleep(int(seconds))


def _report_and_end(go: str, done: str) -> str:
    current().log("began")
    while not os.path.exists(go):
        time.sleep(0.01)
    current().log("must not be kept")
    current().progress(50)
    with open(done, "w"):
        return "stale"


@task
def report_and_end(go: str, done: str) -> str:
    """Writes a line, waits for a file, writes more."""
    return _report_and_end(go, done)


@task(atomic=True)
def report_atomically(go: str, done: str) -> str:
    """The same in a transaction with its success."""
    value = _report_and_end(go, done)
    mark_here("atomic")
    return value


@task(atomic=True)
def wait_atomically(path: str, until: str) -> None:
    """Writes, says which session of PostgreSQL it has, and waits in its transaction for a file."""
    from django.db import connection

    Effect.objects.create(task_id=current().task_id, attempt=current().attempt, note="waits")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        append(path, str(cursor.fetchone()[0]))
    while not os.path.exists(until):
        time.sleep(0.01)


def _fork(copy_ends: str) -> int:
    """The exit code of a copy of this process, which goes on with the body of the task."""
    copy = os.fork()
    if copy:
        return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    current().log("said by the copy")
    if copy_ends == "raise":
        raise ValueError("raised in the copy")
    if copy_ends == "exit":
        raise SystemExit(7)
    return -1


@task
def fork(copy_ends: str) -> int:
    """Forks, and waits for the copy; both use the database before and after."""
    before = Effect.objects.count()
    code = _fork(copy_ends)
    task_id = current().task_id
    Effect.objects.create(task_id=task_id, attempt=1, note="original" if code >= 0 else "copy")
    assert Effect.objects.count() > before
    return code


@task
async def fork_async(copy_ends: str) -> int:
    """The same on the event loop."""
    return _fork(copy_ends)


@task(takes_context=True, atomic=True)
def fork_atomically(context: Context, copy_ends: str) -> int:
    """The same within the transaction that records its success."""
    code = _fork(copy_ends)
    if code >= 0:
        Effect.objects.create(task_id=context.task_id, attempt=context.attempt, note="original")
    return code


@task
def spin_stubbornly(path: str) -> None:
    """A busy loop that swallows whatever is raised in it."""
    append(path, "start")
    while True:
        try:
            while True:
                pass
        except:  # noqa: E722
            append(path, "swallowed")


@task
async def swallow_async(path: str) -> str:
    """Swallows its cancellation, ends late, and would succeed."""
    import asyncio

    append(path, "start")
    ends_at = float("inf")
    while time.monotonic() < ends_at:
        try:
            await asyncio.sleep(0.02)
        except:  # noqa: E722
            append(path, "swallowed")
            ends_at = min(ends_at, time.monotonic() + 4)
    return "done all the same"


@task(takes_context=True)
def follow(context: Context, path: str) -> str:
    """Says the progress that stands in a file, until that is a hundred or it is asked to stop."""
    while (percent := int(Path(path).read_text())) < 100:
        context.progress(percent, 100, f"{percent} of 100 steps")
        context.check()
        time.sleep(0.02)
    return "there"


@task
def say(logger: str, *levels: str) -> None:
    """Logs a record of each level."""
    for level in levels:
        logging.getLogger(logger).log(logging.getLevelNamesMapping()[level], "said at %s", level)


@task
def say_at_root_and_fail() -> None:
    """Fails, once `logging` has added a handler to the root logger."""
    logging.info("It is about to fail")  # noqa: LOG015
    raise ValueError("it failed")


@task(takes_context=True)
def report_for(context: Context, seconds: float, pause: float) -> int:
    """Report progress from time to time, and return how often."""
    end, reports = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        time.sleep(pause)
        reports += 1
        context.progress(reports, reports)
    return reports


@task(takes_context=True)
def fall_silent(context: Context) -> None:
    """Report progress once, and go on for ever."""
    context.progress(1)
    while True:
        time.sleep(0.01)
