"""Groups of collected events over REST: counted, and fired by hand."""

from __future__ import annotations

import pytest

from taskqueue.models import Audit, Task
from tests.api.conftest import ApiClient
from tests.batches.test_batches import digest, patient

pytestmark = pytest.mark.django_db
SECRET = "correct-horse-battery-staple"


def test_groups_are_counted_and_fired_over_rest(root: ApiClient) -> None:
    patient.collect_many([1, SECRET], group="a")
    digest.collect(3)
    answer = root.look("groups/")
    assert SECRET not in answer.content.decode()
    rows = answer.json()["results"]
    assert [(row["name"], row["group"], row["events"]) for row in rows] == [
        (digest.name, "", 1), (patient.name, "a", 2),
    ]  # fmt: skip
    assert rows[1]["bytes"] == len(f'"{SECRET}"') + 1
    assert root.look(f"groups/?name={digest.name}&limit=1").json()["results"] == rows[:1]
    body = {"name": patient.name, "group": "a", "reason": "now"}
    [batch] = root.act("groups/fire/", body).json()["results"]
    assert (batch["task_id"], batch["events"]) == (str(Task.objects.get().id), 2)
    answer = root.act("groups/fire/", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "transition_refused")
    entry = Audit.objects.get()
    assert (entry.noun, entry.verb, entry.subject, entry.reason) == (
        "group", "fire", patient.name, "now",
    )  # fmt: skip
    assert entry.detail == "group 'a': 2 events in 1 task"
