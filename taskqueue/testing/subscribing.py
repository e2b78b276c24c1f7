"""Subscribe handlers in a test, as a worker does when it starts."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.declarations.discovery import discover_tasks
from taskqueue.declarations.handlers import declared
from taskqueue.engine.connections import project_connection
from taskqueue.engine.events.declaring import subscribe_handlers
from taskqueue.engine.events.subscribing import unsubscribe
from taskqueue.exceptions import InvalidSubscription
from taskqueue.models.event import Subscriber
from taskqueue.testing.choices import Which, definition_of
from taskqueue.testing.lasting import Lasting


class subscribed(Lasting):  # noqa: N801  (read as a participle: `with subscribed(tell):`)
    """Subscribe handlers, so that `run_due` and eager mode run their tasks, as a worker would.

    `handlers` are definitions under `@on` or their names; without any, all handlers that the
    project declares. Handlers receive the events of changes within the block. For `with`
    and `async with`. Raises `InvalidSubscription` for a task that is not a handler.
    """

    def __init__(self, *handlers: Which) -> None:
        discover_tasks()
        self._names = [definition_of(handler).name for handler in handlers]
        for name in self._names:
            if name not in declared():
                raise InvalidSubscription(
                    f"{name} is not a handler: put @on(...) above it, such as @on('task.failed')."
                )
        self._begun: list[tuple[BaseDatabaseWrapper, bool, list[str]]] = []

    def _begin(self) -> None:
        connection = project_connection()
        names = subscribe_handlers(connection, self._names or sorted(declared()))
        self._begun.append((connection, connection.in_atomic_block, names))

    def _end(self) -> None:
        connection, was_in_transaction, names = self._begun.pop()
        # A transaction that has ended is taken as rolled back, as at the end of a test; that, and
        # one that can only be rolled back, undoes the subscriptions.
        is_undone = was_in_transaction and not connection.in_atomic_block
        if names and not is_undone and not connection.needs_rollback:
            unsubscribe(connection, Subscriber.HANDLER, *names)
