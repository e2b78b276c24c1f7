"""The tables of verbs are complete, with the permissions that tests expect."""

from __future__ import annotations

import pytest

from taskqueue import control
from taskqueue.core.states import TaskStatus
from taskqueue.engine.control.task_verbs import BULK_VERBS, TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb, Verb
from taskqueue.engine.verbs import VERBS
from tests.verb_needs import NEEDS


def test_each_verb_needs_the_permissions_that_are_expected() -> None:
    assert {
        key: sorted(permission.removeprefix("taskqueue.") for permission in verb.permissions)
        for key, verb in VERBS.items()
    } == {key: sorted(needs.split()) for key, needs in NEEDS.items()}


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: f"{verb.noun}.{verb.name}")
def test_a_verb_that_faces_offer_has_its_words(verb: Verb) -> None:
    assert str(verb.entry)
    if verb.function is not None and verb.noun != "schedule":
        assert verb.help
        assert str(verb.done)


@pytest.mark.parametrize("verb", TASK_VERBS.values(), ids=lambda verb: verb.name)
def test_a_verb_on_tasks_says_which_tasks_allow_it(verb: TaskVerb) -> None:
    assert verb.statuses | verb.also_of_one <= frozenset(TaskStatus)
    for text in (verb.label, verb.allowed, verb.done, verb.past):
        assert str(text)


def test_each_verb_on_tasks_is_a_function_for_one_and_for_many() -> None:
    own = {"stop": "request_stop"}
    for name in TASK_VERBS:
        assert callable(getattr(control, own.get(name, name)))
    for name in BULK_VERBS:
        assert callable(getattr(control, f"{own.get(name, name)}_many"))
