"""The bodies as tasks of the queue in PEERS_APP; for taskqueue also asynchronous ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from common import BODIES

APP = os.environ["PEERS_APP"]
IS_ASYNC = os.environ.get("PEERS_BODIES") == "async"

if APP == "taskqueue":
    from taskqueue import task
elif APP == "django_tasks_db":
    from django.tasks import task
else:

    def task(function: Callable[..., Any]) -> Callable[..., Any]:
        """Leave a function as it is: the queue finds it by its path."""
        return function


def noop(argument: Any) -> None:
    """The no-op body."""
    BODIES["noop"](argument)


async def noop_on_a_loop(argument: Any) -> None:
    """The no-op body on an event loop."""
    BODIES["noop"](argument)


@task
def moment(argument: Any) -> None:
    """The body that tells how late it is."""
    BODIES["moment"](argument)


@task
def hold(argument: Any) -> None:
    """The long body."""
    BODIES["hold"](argument)


noop = task(noop_on_a_loop if IS_ASYNC else noop)
