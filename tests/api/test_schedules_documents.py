"""Schedules over REST as one document; runs with other arguments, and the last run."""

from __future__ import annotations

import pytest

from taskqueue.models import Audit, Schedule, Task
from tests.api.conftest import ApiClient
from tests.api.test_schedules import RARELY, created
from tests.sample.tasks import add, greet

pytestmark = pytest.mark.django_db


def test_a_document_goes_from_one_installation_to_another(root: ApiClient) -> None:
    created(root, jitter=30, max_runs=5, overlap="allow")
    document = root.look("schedules-document/").json()
    (entry,) = document["schedules"]
    assert (entry["jitter"], entry["max_runs"], entry["args"]) == (30, 5, ["Ann"])
    same = root.act("schedules-document/", document).json()
    assert same == {
        "dry_run": False, "schedules": [{"name": "reports", "action": "none", "changes": {}}],
    }  # fmt: skip
    entry["overlap"] = "skip"
    tried = root.act("schedules-document/", {**document, "dry_run": True}).json()
    assert tried["schedules"][0]["changes"] == {"overlap": ["allow", "skip"]}
    assert Schedule.objects.get().overlap == "allow"
    root.act("schedules-document/", {**document, "reason": "moved"})
    assert Schedule.objects.get().overlap == "skip"
    assert Audit.objects.filter(reason="moved").count() == 1


def test_a_document_that_is_wrong_changes_nothing(root: ApiClient) -> None:
    good = {"name": "a", "task": greet.name, "rule": RARELY, "args": ["Ann"]}
    for wrong, status, told in (
        ({**good, "name": "b", "nonsense": 1}, 422, "no field 'nonsense'"),
        ({**good, "name": "b", "task": add.name, "args": [1, 2]}, 403, "api=True"),
    ):
        answer = root.act("schedules-document/", {"schedules": [good, wrong]})
        assert answer.status_code == status
        assert told in answer.json()["detail"]
    assert not Schedule.objects.exists()


def test_a_run_may_have_other_arguments(root: ApiClient) -> None:
    created(root)
    answer = root.act("schedules/reports/run/", {"args": ["Bob"]})
    assert answer.status_code == 202
    assert Task.objects.get(id=answer.json()["task_id"]).args == ["Bob"]
    refused = root.act("schedules/reports/run/", {"args": [1, 2, 3, 4, 5]})
    assert refused.status_code == 422


def test_one_that_has_had_its_runs_says_so(root: ApiClient) -> None:
    created(root, max_runs=1)
    Schedule.objects.update(run_count=1, next_at=None)
    told = root.look("schedules/reports/").json()
    assert (told["state"], told["run_count"], told["max_runs"]) == ("over", 1, 1)
    assert told["why"].startswith("The one run of its rule began.")
