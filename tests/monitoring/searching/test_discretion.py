"""A search as it is shown to who may not view arguments."""

from __future__ import annotations

import pytest

from taskqueue.monitoring.searching.search import without

SEARCHES = [
    ("status:failed  name:shop.*", "status:failed  name:shop.*"),
    ("args.token:s3cret status:failed", "args.token:[redacted] status:failed"),
    ('mail ArGs.a.0:s3cret,"s3 \\" cret",s3 queue:"a b"', 'mail args.a.0:[redacted] queue:"a b"'),
    ("metadata.args.x:7 key:args.1", "metadata.args.x:7 key:args.1"),
    ('"args.token:a word" error:"out of stock"', '"args.token:a word" error:"out of stock"'),
    ('args.token:"s3cret', "[redacted]"),
    ("args.token:" + "s" * 2000, "[redacted]"),
    ("", ""),
]


@pytest.mark.parametrize(("typed", "shown"), SEARCHES)
def test_values_of_arguments_are_left_out_and_nothing_else(typed: str, shown: str) -> None:
    assert without({"args"}, typed) == shown
    assert without({"args"}, shown) == shown


WORKERS = [
    ("WORKER:w1,w2 args.a:5", "worker:[redacted] args.a:5"),
    ("worker name:worker.* key:x", "worker name:worker.* key:x"),
    ('worker:"w1', "[redacted]"),
]


@pytest.mark.parametrize(("typed", "shown"), WORKERS)
def test_names_of_workers_are_left_out_and_nothing_else(typed: str, shown: str) -> None:
    assert without({"worker"}, typed) == shown
    assert without((), typed) == typed
