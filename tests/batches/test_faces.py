"""Groups on the command line and from Python: counted, and fired by hand."""

from __future__ import annotations

import pytest

from taskqueue import control
from taskqueue.exceptions import TransitionRefused
from taskqueue.models import Audit, Collected
from tests.batches.test_batches import batches, digest, patient
from tests.management.test_taskqueue import refused, run, run_json

pytestmark = pytest.mark.django_db
SECRET = "correct-horse-battery-staple"


def test_groups_are_counted_and_fired_on_the_command_line() -> None:
    digest.collect_many(range(5), group="a")
    patient.collect(SECRET)
    assert SECRET not in run("groups")
    [row] = run_json("groups", "list", "--name", digest.name)
    assert (row["group"], row["events"]) == ("a", 5)
    assert len(run_json("groups")) == 2
    lines = run("groups", "fire", digest.name, "--group", "a", "--by", "ann").splitlines()
    assert [line.split("  ")[1] for line in lines] == ["3 events", "2 events"]
    assert batches() == [[0, 1, 2], [3, 4]]
    assert Audit.objects.get().actor == "ann"
    code, said = refused("groups", "fire", digest.name, "--group", "a")
    assert (code, "has no events" in said) == (1, True)
    assert Collected.objects.count() == 1


def test_groups_are_fired_from_python() -> None:
    digest.collect(1, group="a")
    [batch] = control.fire_group(digest.name, "a", by="eve", reason="now")
    assert batch.events == 1
    with pytest.raises(TransitionRefused, match="has no events"):
        control.fire_group(digest.name, "a")
    assert Audit.objects.count() == 1
