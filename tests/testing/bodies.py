"""Tasks of these tests: each calls what the test puts into `play`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import transaction

from taskqueue import Context, Fixed, current, task
from tests.engine.steps import Undo


@contextmanager
def taken_back() -> Iterator[None]:
    """A transaction that ends with an error, as that of a view may."""
    with suppress(Undo), transaction.atomic():
        yield
        raise Undo


play: dict[str, Callable[[], Any]] = {}
"""What `perform` does, by the word that it is given; emptied after each test."""


@task(name="testing.perform", max_attempts=3, backoff=Fixed(60))
def perform(word: str) -> Any:
    """Does what the test says."""
    return play[word]()


@task(name="testing.perform_atomically", atomic=True)
def perform_atomically(word: str) -> Any:
    """Does it in one transaction with the record of its success."""
    return play[word]()


@task(name="testing.perform_async")
async def perform_async(word: str) -> Any:
    """Does it on an event loop."""
    return await play[word]()


@task(name="testing.tell", takes_context=True)
def tell(context: Context) -> list[Any]:
    """What its context knows."""
    context.progress(1, 4, "a quarter")
    context.log("told")
    return [context.attempt, context.worker_name, context.metadata, current().task_id]
