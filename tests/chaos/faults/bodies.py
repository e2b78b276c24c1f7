"""Bodies that misbehave, and tasks that this version of the code does not know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from taskqueue.models import Lease, Task
from tests.chaos import bad_bodies as bad
from tests.chaos import tasks
from tests.chaos.faults.base import Fault
from tests.chaos.kinds import Kind

MAX_TRACEBACK, MAX_MESSAGE, MAX_LOG = 32 * 1024, 4096, 256 * 1024
CRASH, TIMEOUT = "AttemptLost", "TaskTimeout"


class Body(NamedTuple):
    """A bad body, what it is given beside the journal, and how it must end."""

    definition: Any
    arguments: tuple[Any, ...] = ()
    end: str = "failed"
    error: str = ""
    """The class of its error ends so."""
    leases: tuple[str, ...] = ("failed",)

    @property
    def kind(self) -> str:
        """Its name in the mixture."""
        return "bad " + " ".join([self.definition.body.__name__, *map(str, self.arguments)])


LOST_TWICE = ("lost", "lost")
GOOD = ("succeeded",)


class Misbehaving(Fault):
    """Some of the bodies of the load misbehave."""

    bodies: Sequence[Body] = ()
    weight = 0.4
    share = 0.7

    def prepare(self) -> None:
        for body in self.bodies:
            self.stage.kinds.append(
                Kind(
                    name=body.kind, weight=self.weight, definition=body.definition,
                    arguments=lambda path, chance, body=body: (path, *body.arguments),
                    ends=frozenset({body.end}), most=1,
                )
            )  # fmt: skip
        super().prepare()
        # Each comes at least once; the load brings more of them.
        for body in self.bodies:
            metadata = {"kind": body.kind}
            body.definition.using(metadata=metadata).enqueue(
                str(self.stage.journal), *body.arguments
            )

    def strike(self) -> None:
        self.stage.await_load(1)

    def look(self) -> Iterator[str]:
        for body in self.bodies:
            for task in Task.objects.filter(metadata__kind=body.kind):
                yield from self._look_at(body, task)

    def _look_at(self, body: Body, task: Task) -> Iterator[str]:
        ends = Lease.objects.filter(task=task).order_by("attempt").values_list("status", flat=True)
        if (task.status, tuple(ends)) != (body.end, body.leases):
            yield (
                f"{body.kind} is {task.status} with {list(ends)}, not {body.end} with"
                f" {list(body.leases)}: {task.error_class} {task.error_message[:200]}"
            )
        if body.error and not task.error_class.endswith(body.error):
            yield f"{body.kind} tells of {task.error_class!r}, not {body.error}"
        if len(task.error_message) > MAX_MESSAGE:
            yield f"{body.kind} has a message of {len(task.error_message)} characters"
        for lease in Lease.objects.filter(task=task):
            if len(lease.traceback) > MAX_TRACEBACK:
                yield f"{body.kind} has a traceback of {len(lease.traceback)} characters"


class Deadly(Misbehaving):
    """Bodies that end their process: segfault, abort, `os._exit`, out of memory."""

    name = "deadly_bodies"
    expectation = "lost and counted as crashes, up to the limit; exit 0 without an outcome too"
    weight = 0.15
    share = 0.5
    bodies = (
        Body(bad.segfault, error=CRASH, leases=LOST_TWICE),
        Body(bad.abort, error=CRASH, leases=LOST_TWICE),
        Body(bad.exit_hard, (0,), error=CRASH, leases=LOST_TWICE),
        Body(bad.exit_hard, (7,), error=CRASH, leases=LOST_TWICE),
        Body(bad.killed_for_memory, error=CRASH, leases=LOST_TWICE),
        Body(bad.run_out_of_memory, error="MemoryError"),
    )
    fleet = (("process", 2), ("process", 2))


class Exiting(Misbehaving):
    """Bodies that raise SystemExit, KeyboardInterrupt, GeneratorExit."""

    name = "exiting_bodies"
    expectation = "an ordinary failure"
    bodies = tuple(
        Body(bad.raise_exit, (name,), error=name)
        for name in ("SystemExit", "KeyboardInterrupt", "GeneratorExit")
    )


class Endless(Misbehaving):
    """Bodies without an end: a loop, a bare `except:`, a call that holds the interpreter."""

    name = "endless_bodies"
    expectation = "pings go on; the soft stop is tried; killed at the hard limit"
    weight = 0.1
    share = 0.5
    bodies = (
        Body(bad.loop, error=TIMEOUT),
        Body(bad.loop_stubbornly, error=TIMEOUT),
        Body(bad.hold_interpreter, (5,), error=TIMEOUT),
    )
    fleet = (("process", 2), ("process", 2))


class Excessive(Misbehaving):
    """Bodies that leave threads and processes behind, or produce more than anybody can keep."""

    name = "excessive_bodies"
    expectation = "bounded, and capped with a marker"
    bodies = (
        Body(bad.leak_threads, end="succeeded", leases=GOOD),
        Body(bad.leave_grandchild, end="succeeded", leases=GOOD),
        Body(bad.say_much, (3000,), end="succeeded", leases=GOOD),
        Body(bad.return_much),
        Body(bad.raise_much, error="ValueError"),
        Body(bad.raise_from_deep, (900,), error="ValueError"),
    )
    weight = 0.2

    def look(self) -> Iterator[str]:
        yield from super().look()
        for task in Task.objects.filter(metadata__kind__startswith="bad say_much"):
            said = sum(len(line.message) for line in task.logs.all())
            if said > 1.2 * MAX_LOG:
                yield f"{said} characters of log lines were kept of one attempt"
            if not said:
                yield "no log line was kept"


class Unspeakable(Misbehaving):
    """Results that are not JSON, exceptions that cannot be printed."""

    name = "unspeakable_bodies"
    expectation = "failed with a clear error; never lost, never looping"
    bodies = (Body(bad.return_set), Body(bad.raise_unprintable, error="Unprintable"))


NEWER, NOWHERE = "tests.chaos.tasks.of_tomorrow", "tests.chaos.tasks.of_nowhere"


class Misfits(Fault):
    """Tasks of newer code, of code that nobody has, and with arguments that no longer fit."""

    name = "misfits"
    expectation = "parked for a worker that knows them, failed after a limit; failed at once"
    each = 15
    seconds = 9.0

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.1)
        path = str(stage.journal)
        for name, arguments in ((NEWER, [path]), (NOWHERE, [path])):
            self._disguise(tasks.work, name, arguments)
        self._disguise(tasks.give_up, tasks.give_up.name, [path, 2, "too many"])
        stage.pause(0, 2)
        stage.start_worker("process", 2, env={"CHAOS_NEWER_CODE": "1"})
        stage.await_load(1)

    def _disguise(self, definition: Any, name: str, arguments: list[Any]) -> None:
        """Enqueue tasks as another version of the code would have."""
        from django.db.transaction import atomic

        with atomic():
            calls = [((str(self.stage.journal),), {})] * self.each
            results = definition.using(metadata={"kind": "misfit"}).enqueue_many(calls)
            ids = [result.id for result in results]
            Task.objects.filter(id__in=ids).update(name=name, args=arguments)

    def look(self) -> Iterator[str]:
        for name, expected, error in (
            (NEWER, "succeeded", ""),
            (NOWHERE, "failed", "UnknownTask"),
            (tasks.give_up.name, "failed", "ArgumentsDoNotBind"),
        ):
            found = Task.objects.filter(name=name, metadata__kind="misfit")
            if len(found) != self.each:
                yield f"{len(found)} tasks of {name}, not {self.each}"
            for task in found:
                if task.status != expected or not task.error_class.endswith(error):
                    yield f"{name} is {task.status}, not {expected}: {task.error_class}"
                    break
