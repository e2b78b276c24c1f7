"""Tasks of Django's framework as steps."""

from __future__ import annotations

import pytest

from taskqueue import InvalidWorkflow, fan_out, group
from taskqueue.backend.framework import InvalidTask
from taskqueue.backend.tasks import QueueTask
from tests.workflows import shop
from tests.workflows.graph_text import edges, steps


def double(number: int) -> int:
    return 2 * number


TASK = QueueTask(func=double)


def test_tasks_of_djangos_framework_are_steps() -> None:
    graph = (TASK.s(1) | TASK.using(priority=5).s() | shop.publish.s()).build()
    assert steps(graph) == {
        "double": "double[1]",
        "double-2": 'double[{"$step":"double"}]',
        "publish": 'publish[{"$step":"double-2"}]',
    }
    assert edges(graph) == {"double -> double-2", "double-2 -> publish"}
    call = graph.by_name["double-2"].call
    assert call is not None
    assert call.definition is not None
    assert call.definition.options.priority == 5


def test_calls_of_one_of_them_are_one_map() -> None:
    for canvas in (group(TASK.s(1), TASK.s(2)), TASK.map([1, 2])):
        assert steps(canvas.build()) == {"double": "double*2 [1] [2]"}
    assert steps(fan_out(TASK, [((1,), {})]).build()) == {"double": "double*1 [1]"}


def test_tasks_of_another_backend_are_no_steps() -> None:
    with pytest.raises(InvalidTask, match="which has no workflows"):
        TASK.using(backend="immediate").s(1)
    with pytest.raises(InvalidWorkflow, match="made of signatures"):
        group(TASK)
