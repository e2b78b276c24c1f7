"""Workers, pumps, children and the database go away while events are subscribed."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress

from django.conf import settings
from django.db import DatabaseError, connection
from django.test import override_settings

from taskqueue import webhooks
from taskqueue.models import Delivery, Event, Task
from taskqueue.webhooks.delivering import message_id
from tests.chaos import event_bodies
from tests.chaos.event_bodies import CANARY
from tests.chaos.faults.base import Fault
from tests.chaos.faults.processes import kill_a_child
from tests.chaos.feed_reader import FeedReader
from tests.chaos.fleet import LEASE
from tests.chaos.kinds import Arguments, Kind
from tests.chaos.limit_rows import await_quiet
from tests.events.steps import are_numbered
from tests.webhooks.receiver import receiving

ALLOWED = {"WEBHOOK_ALLOW": ["127.0.0.1/32"]}
HANDLED = ("task.succeeded", "task.retrying")
# Not the ends of workers: nobody would be left to deliver those of the last.
DELIVERED = ("task.failed", "task.cancelled", "task.lost", "worker.started")
MOST_FREEZES, MOST_OUTAGES = 2, 2


def _with_a_secret(path: str, chance: random.Random) -> Arguments:
    return path, CANARY


class EventsHeard(Fault):
    """Workers, those that number events among them, are killed, frozen and cut off."""

    name = "events"
    is_quick = True
    expectation = "events equal the changes, each once; numbers have no gaps; one effect of each"
    seconds = 15.0
    healing = 120.0
    fleet = (("process", 2), ("thread", 3), ("process", 2), ("thread", 2))

    def prepare(self) -> None:
        stage = self.stage
        stage.kinds += [
            Kind(
                name="tell", weight=8, definition=event_bodies.tell, arguments=_with_a_secret,
                most=10,
            ),
            Kind(
                name="blurt", weight=3, definition=event_bodies.blurt, arguments=_with_a_secret,
                ends=frozenset({"failed"}), most=5,
            ),
        ]  # fmt: skip
        self._counts: Counter[str] = Counter()
        self._open = ExitStack()
        stage.at_end(self._open.close)
        self._receiver = self._open.enter_context(receiving())
        self._heard = event_bodies.listen(*HANDLED)
        with override_settings(TASKQUEUE={**settings.TASKQUEUE, **ALLOWED}):
            webhooks.create(f"http://127.0.0.1:{self._receiver.port}/", kinds=DELIVERED)
        # Everybody is subscribed before the first worker starts.
        for pool, slots in self.fleet:
            stage.start_worker(pool, slots, settings=ALLOWED, wait_ready=False)
        for worker in stage.workers:
            worker.wait_until_ready(90)
        self._reader = FeedReader()
        self._reader.start()

    def strike(self) -> None:
        stage = self.stage
        stage.await_load(0.1)
        acts = [self._kill_pump, self._kill_one, self._kill_child, self._stop, self._freeze]
        self.chance.shuffle(acts)
        while not stage.client.is_over.is_set():
            stage.pause(0.3, 1.5)
            # Each in turn, so that a short run has all of them.
            acts.append(acts.pop(0))
            acts[-1]()
        self._await_end()
        self._reader.finish()
        self._counts["read"] = len(self._reader.rows)
        told = tuple(each.body.decode() for each in self._receiver.received)
        canaries = (*self._heard.canaries, str(stage.journal))
        stage.heard = self._heard._replace(
            read=tuple(self._reader.rows), told=told, canaries=canaries
        )

    def _kill_pump(self) -> None:
        """The worker that started first looks most often for events to number."""
        self._kill(0)
        self._counts["pumps killed"] += 1

    def _kill_one(self) -> None:
        self._kill(self.chance.randrange(len(self.stage.alive())))
        self._counts["kills"] += 1

    def _kill(self, place: int) -> None:
        stage = self.stage
        worker, began = stage.alive()[place], stage.now()
        worker.kill()
        stage.start_worker(self.chance.choice(("process", "thread")), 3, settings=ALLOWED)
        stage.note(self.name, began, worker)

    def _kill_child(self) -> None:
        kill_a_child(self.chance.choice(self.stage.alive()), self.chance)
        self._counts["children killed"] += 1

    def _stop(self) -> None:
        """The server goes away for a moment, or ends all sessions; on SQLite a pump is killed."""
        stage, server, began = self.stage, self.stage.database.server, self.stage.now()
        if server is None:
            self._kill_pump()
            return
        if self._counts["outages"] < MOST_OUTAGES:
            server.stop("immediate")
            stage.pause(0, 1.5)
            server.start()
            connection.close()
            self._counts["outages"] += 1
        else:
            with suppress(DatabaseError):
                stage.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            self._counts["cuts"] += 1
        stage.note(self.name, began)

    def _freeze(self) -> None:
        """A worker's parent is stopped, half of the time the pump's, beyond its lease or not."""
        if self._counts["freezes"] >= MOST_FREEZES:
            return
        alive = self.stage.alive()
        worker, began = self.chance.choice([alive[0], self.chance.choice(alive)]), self.stage.now()
        worker.suspend()
        time.sleep(self.chance.choice((1.0, LEASE + 1.0)))
        worker.resume()
        self._counts["freezes"] += 1
        self.stage.note(self.name, began, worker)

    def _await_end(self) -> None:
        """Events cause tasks, whose events are numbered in their turn."""
        deadline = time.monotonic() + self.healing
        while not self._is_quiet() and time.monotonic() < deadline:
            time.sleep(0.2)
        with suppress(DatabaseError):
            await_quiet(20)

    def _is_quiet(self) -> bool:
        if self.stage.open_tasks() != 0:
            return False
        # What was numbered last may have caused tasks.
        return self.stage.ask(are_numbered, False) and self.stage.open_tasks() == 0

    def look(self) -> Iterator[str]:
        if failed := Task.objects.filter(name=event_bodies.hear.name).exclude(status="succeeded"):
            yield f"{len(failed)} tasks of the handler did not succeed"
        rows = Delivery.objects.exclude(seq=None).values_list("id", flat=True)
        ids = {message_id(id) for id in rows}
        got = {each.headers.get("webhook-id") for each in self._receiver.received}
        if not ids or ids - got:
            yield f"{len(ids - got)} of {len(ids)} deliveries did not arrive"
        if got - ids:
            yield f"{len(got - ids)} deliveries arrived that are not there"
        if undelivered := Delivery.objects.exclude(status="delivered").count():
            yield f"{undelivered} deliveries are not marked as delivered"
        if not any(worker.log().count("Events not handed on") for worker in self.stage.workers):
            return
        yield "the effects of a subscription were left out"

    def note(self) -> str:
        """What there was, in figures."""
        figures = {
            "events": Event.objects.count(),
            "handled": Task.objects.filter(name=event_bodies.hear.name).count(),
            "deliveries": Delivery.objects.count(),
            **self._counts,
        }
        return ", ".join(f"{name} {value}" for name, value in figures.items())
