"""Batches that cannot be, and events that cannot be stored, are refused with the remedy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from taskqueue import Batch, task
from taskqueue.exceptions import InvalidArguments, InvalidTask
from taskqueue.models import Collected
from tests.batches.test_batches import digest, plain

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_size": 0}, "max_size=.* whole number from 1"),
        ({"max_size": True}, "max_size"),
        ({"max_size": 2.0}, "max_size"),
        ({"max_bytes": 10}, "max_bytes=.* from 1,024"),
        ({"grace": -1}, "grace=.* 0 to 30 days"),
        ({"grace": "5"}, "grace"),
        ({"max_delay": timedelta(days=31)}, "max_delay"),
        ({"grace": 61}, "must not be longer than max_delay=60"),
    ],
)
def test_batches_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidTask, match=words):
        Batch(**options)


def test_definitions_that_cannot_collect_are_refused() -> None:
    with pytest.raises(InvalidTask, match="must be a Batch"):
        task(batch=100)(digest.body)
    for options in ({"unique_key": "k"}, {"workers": 2}, {"broadcast": True}):
        with pytest.raises(InvalidTask, match="batch= excludes unique_key"):
            task(name=f"tests.refused.{next(iter(options))}", batch=Batch(), **options)(digest.body)
    with pytest.raises(InvalidTask, match="one argument, the list of the events"):
        task(name="tests.two", batch=Batch())(_two)
    with pytest.raises(InvalidTask, match="does not collect events"):
        plain.collect(1)
    with pytest.raises(InvalidTask, match="belongs to the definition"):
        digest.using(batch=Batch())


def _two(one: object, two: object) -> None: ...


@pytest.mark.parametrize(
    ("event", "group"), [(object(), ""), (1, "g" * 201), (1, "a\x00"), (1, 5), (float("nan"), "")]
)
def test_values_that_cannot_be_stored_are_refused(event: object, group: Any) -> None:
    with pytest.raises(InvalidArguments):
        digest.collect_many([1, event], group=group)
    assert not Collected.objects.exists()
