"""Workers are asked to be quiet, to stop, to stop at once: who is asked, and what they see."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from taskqueue import TransitionRefused, WorkerDoesNotExist
from taskqueue.control import (
    WorkerFilter,
    kill_worker,
    quiet_worker,
    request_workers,
    resume_worker,
    resume_workers,
    stop_worker,
)
from taskqueue.engine import workers
from taskqueue.engine.registration import unregister
from taskqueue.engine.workers import Asked
from taskqueue.models import Audit, Worker
from taskqueue.models.worker import WorkerRequest, WorkerStatus
from tests.engine.test_workers import fall_silent, registered, row, touch

pytestmark = pytest.mark.django_db
VERBS = {"quiet": quiet_worker, "stop": stop_worker, "kill": kill_worker}


def asked(name: str = "w1") -> str:
    return str(row(name).request)


@pytest.mark.parametrize("request_", ["quiet", "stop", "kill"])
def test_a_ping_returns_requests_and_acknowledges_them(request_: str) -> None:
    own, answer = registered()
    assert touch(own, answer) == Asked("", "", "")
    assert row().request_seen_at is None
    VERBS[request_]("w1", by="anna", reason="a new release")
    worker = row()
    assert (worker.request, worker.requested_by, worker.request_reason) == (
        request_,
        "anna",
        "a new release",
    )
    assert worker.request_seen_at is None
    assert touch(own, answer) == Asked(request_, "anna", "a new release")
    seen_at = row().request_seen_at
    assert seen_at >= worker.requested_at
    touch(own, answer, status=WorkerStatus.QUIET.value)
    assert (row().request_seen_at, row().status) == (seen_at, "quiet")


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_ping_tells_whether_enqueues_wake_the_worker(is_idle: bool) -> None:
    own, answer = registered()
    workers.set_idle(connection, worker_id=answer.id, is_idle=is_idle)
    assert touch(own, answer) == Asked("", "", "", is_idle=is_idle)


def test_each_request_is_audited_with_what_the_worker_was() -> None:
    registered()
    quiet_worker("w1", by="anna", reason="a new release")
    stop_worker("w1", by="ben")
    lines = Audit.objects.order_by("id").values_list(
        "verb", "subject", "actor", "reason", "before", "detail"
    )
    assert list(lines) == [
        ("quiet", "w1", "anna", "a new release", "running", ""),
        ("stop", "w1", "ben", "", "running", "quiet"),
    ]


@pytest.mark.parametrize("first", ["quiet", "stop", "kill"])
@pytest.mark.parametrize("second", ["quiet", "stop", "kill"])
def test_a_weaker_request_never_replaces_a_stronger_one(first: str, second: str) -> None:
    own, answer = registered()
    VERBS[first]("w1", by="anna")
    touch(own, answer)
    VERBS[second]("w1", by="ben")
    order = ["quiet", "stop", "kill"]
    is_stronger = order.index(second) > order.index(first)
    assert asked() == (second if is_stronger else first)
    assert (row().requested_by, row().request_seen_at is None) == (
        ("ben", True) if is_stronger else ("anna", False)
    )
    assert Audit.objects.count() == (2 if is_stronger else 1)


def test_a_resumed_worker_is_asked_nothing_and_the_audit_says_who() -> None:
    own, answer = registered()
    quiet_worker("w1", by="anna", reason="a deploy")
    touch(own, answer, status=WorkerStatus.QUIET.value)
    resume_worker("w1", by="ben", reason="it is over")
    assert (asked(), row().requested_by, row().requested_at) == ("", "", None)
    assert touch(own, answer) == Asked("", "", "")
    assert (row().status, row().request_seen_at) == ("running", None)
    line = Audit.objects.order_by("id").values_list("verb", "actor", "reason", "before", "detail")
    assert list(line)[-1] == ("resume", "ben", "it is over", "quiet", "quiet")
    quiet_worker("w1")
    assert touch(own, answer).request == "quiet"


@pytest.mark.parametrize("request_", ["", "stop", "kill"])
def test_only_a_quiet_worker_is_resumed_and_a_stop_stands(request_: str) -> None:
    registered()
    if request_:
        VERBS[request_]("w1", by="anna")
    with pytest.raises(TransitionRefused, match=request_ or "is not quiet"):
        resume_worker("w1")
    assert resume_workers(WorkerFilter(everyone=True)) == []
    assert asked() == request_
    assert not Audit.objects.filter(noun="worker", verb="resume").exists()


def test_a_stop_after_a_resume_and_a_resume_of_many() -> None:
    for name in ("a", "b", "c"):
        registered(name)
    request_workers(WorkerFilter(names=["a", "b"]), "quiet")
    stop_worker("b")
    assert resume_workers(WorkerFilter(everyone=True)) == ["a"]
    assert [asked(name) for name in "abc"] == ["", "stop", ""]
    with pytest.raises(WorkerDoesNotExist):
        resume_workers(WorkerFilter(names=["a", "nobody"]))


def test_a_worker_that_registers_again_under_the_name_has_no_request() -> None:
    registered()
    kill_worker("w1", by="anna", reason="why")
    fall_silent()
    own, answer = registered(pid=8)
    assert touch(own, answer) == Asked("", "", "")
    worker = row()
    assert (worker.request, worker.requested_by, worker.request_reason) == ("", "", "")
    assert (worker.requested_at, worker.request_seen_at) == (None, None)


def test_a_request_to_a_worker_stays_readable_after_it_stopped() -> None:
    own, answer = registered()
    stop_worker("w1", by="anna")
    touch(own, answer)
    unregister(worker_id=answer.id, incarnation=own.incarnation)
    worker = row()
    assert worker.requested_at <= worker.request_seen_at <= worker.stopped_at
    assert (worker.request, worker.requested_by) == ("stop", "anna")


def test_a_name_that_nobody_has_is_refused_and_the_nearest_suggested() -> None:
    registered("mailer-1")
    with pytest.raises(WorkerDoesNotExist, match="Did you mean 'mailer-1'"):
        stop_worker("mailer-l")
    assert asked("mailer-1") == ""


@pytest.mark.parametrize("status", ["stopped", "lost"])
def test_a_worker_that_has_ended_is_not_asked(status: str) -> None:
    registered()
    Worker.objects.update(status=status)
    with pytest.raises(WorkerDoesNotExist, match=f"'w1' is {status}: there is nobody to ask"):
        stop_worker("w1")
    assert request_workers(WorkerFilter(everyone=True), WorkerRequest.STOP) == []
    assert Audit.objects.count() == 0


def test_if_one_of_the_names_is_unknown_nobody_is_asked() -> None:
    registered("a")
    with pytest.raises(WorkerDoesNotExist):
        request_workers(WorkerFilter(names=["a", "b"]), WorkerRequest.STOP)
    assert asked("a") == ""


@pytest.mark.parametrize(
    ("which", "names"),
    [
        ({"everyone": True}, ["a", "b", "c"]),
        ({"host": "here"}, ["a", "b"]),
        ({"queue_name": "mail"}, ["a", "c"]),
        ({"queue_name": "images"}, ["b", "c"]),
        ({"host": "here", "queue_name": "mail"}, ["a"]),
        ({"names": ["c", "a"]}, ["a", "c"]),
    ],
)
def test_workers_are_chosen_by_host_and_by_the_queues_they_serve(
    which: dict[str, Any], names: list[str]
) -> None:
    registered("a", host="here", queues={"mail": 1})
    registered("b", host="here", queues={"images": 1})
    registered("c", host="there", queues={})
    assert request_workers(WorkerFilter(**which), WorkerRequest.QUIET) == names
    assert [name for name in "abc" if asked(name)] == names


@pytest.mark.parametrize("which", [{}, {"everyone": True, "host": "here"}])
def test_a_choice_of_nothing_in_particular_must_be_said(which: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="or say everyone=True"):
        WorkerFilter(**which)


def test_no_names_are_nobody_and_not_everybody() -> None:
    registered()
    assert request_workers(WorkerFilter(names=[]), WorkerRequest.STOP) == []
    assert asked() == ""


def test_a_request_may_be_given_as_text_and_must_be_one() -> None:
    registered()
    assert request_workers(WorkerFilter(names=["w1"]), "stop", by=None) == ["w1"]
    assert asked() == "stop"
    with pytest.raises(ValueError, match="asked for 'quiet', 'stop', 'kill', not 'dance'"):
        request_workers(WorkerFilter(everyone=True), "dance")


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
def test_text_that_cannot_be_stored_names_nobody(text: str) -> None:
    registered()
    with pytest.raises(WorkerDoesNotExist, match="No worker is named"):
        stop_worker(text)
    assert request_workers(WorkerFilter(host=text), "stop") == []
    assert request_workers(WorkerFilter(queue_name=text), "stop") == []


def test_a_quiet_worker_that_falls_silent_is_lost_like_any_other() -> None:
    own, answer = registered()
    touch(own, answer, status=WorkerStatus.QUIET.value)
    fall_silent()
    assert workers.mark_lost(connection) == 1
    assert row().status == "lost"
