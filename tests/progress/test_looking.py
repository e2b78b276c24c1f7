"""What an end user sees: how far it is, and nothing else."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection, connections
from django.template import Context, Template
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from taskqueue import chord, control
from taskqueue.core.outcomes import OutcomeKind
from taskqueue.models import Lease, Step, Task, Workflow
from taskqueue.progress import Progress, progress_of, streams
from taskqueue.progress.looking import CAP, LOOK_AT_TASK, LOOK_AT_WORKFLOW
from taskqueue.progress.tokens import read, signed
from tests.engine.steps import claim, claim_one, end
from tests.sample.tasks import add, log_in, noop
from tests.sample.traced_tasks import part, whole

CANARY = "canary-71d3a8c04e55"


@pytest.fixture(autouse=True)
def _without_counts() -> None:
    """Requests of other tests count for nothing."""
    cache.clear()


def seen(progress: Progress, client: Client | None = None, **headers: str) -> dict[str, Any]:
    answer = (client or Client()).get(progress.url, headers=headers)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "private, no-store"
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.django_db
def test_a_task_is_seen_from_its_place_in_line_to_its_end() -> None:
    first, task = noop.enqueue(), noop.enqueue()
    progress = progress_of(task)
    assert seen(progress) == {
        "state": "waiting", "text": "Waiting: 1 is ahead in line", "percent": 0.0, "position": 1,
        "is_finished": False,
    }  # fmt: skip
    (claimed,) = claim(1)
    end(claimed, OutcomeKind.SUCCEEDED)
    first.refresh()
    assert first.is_finished
    assert seen(progress)["text"] == "Waiting: it is next in line"
    claimed = claim_one()
    assert seen(progress) == {"state": "running", "text": "Running", "is_finished": False}
    Lease.objects.filter(task_id=task.id).update(
        progress=41.66, progress_message="row <b>4</b>", progress_detail={"rows": [4]}
    )
    told = seen(progress)
    assert (told["percent"], told["message"]) == (41.7, "row <b>4</b>")
    assert told["detail"] == {"rows": [4]}
    end(claimed, OutcomeKind.SUCCEEDED, return_value=json.dumps(CANARY))
    assert seen(progress) == {
        "state": "succeeded", "text": "Finished", "percent": 100.0, "is_finished": True,
    }  # fmt: skip


@pytest.mark.django_db
def test_those_of_higher_priority_and_longer_waits_are_ahead() -> None:
    noop.using(priority=5).enqueue()
    noop.using(queue_name="other").enqueue()
    noop.enqueue()
    progress = progress_of(noop.enqueue())
    noop.enqueue()
    noop.using(priority=-5).enqueue()
    assert seen(progress)["position"] == 2


@pytest.mark.django_db
def test_a_long_line_is_not_counted_to_its_head() -> None:
    noop.enqueue_many([((), {})] * (CAP + 50))
    told = seen(progress_of(noop.enqueue()))
    assert told["text"] == "Waiting: more than 1,000 are ahead in line"


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["scheduled", "ready", "running", "failed"])
def test_a_look_is_one_statement(status: str) -> None:
    task = noop.enqueue()
    Task.objects.update(status=status, finished_at=timezone.now() if status == "failed" else None)
    progress = progress_of(task)
    with CaptureQueriesContext(connection) as looked:
        seen(progress)
    assert len(looked) == 1


@pytest.mark.django_db
def test_of_a_failure_there_is_only_a_reference() -> None:
    task = add.enqueue(1)
    end(claim_one(), OutcomeKind.FAILED, error_class="builtins.ValueError", error_message=CANARY)
    told = seen(progress_of(task, show_result=True, redirect="/exports/"))
    reference = task.id.hex[-8:]
    assert told == {
        "state": "failed", "text": f"It failed. Reference {reference}.", "is_finished": True,
    }  # fmt: skip


@pytest.mark.django_db
def test_progress_says_if_the_task_was_cancelled_or_is_gone() -> None:
    task = noop.enqueue()
    progress = progress_of(task)
    control.cancel(task.id, by="anna", reason=CANARY)
    assert seen(progress)["text"] == "It was cancelled."
    Task.objects.all().delete()
    assert seen(progress)["text"] == "It is no longer known."


@pytest.mark.django_db
def test_the_result_and_a_redirect_are_seen_only_where_asked_for() -> None:
    task = add.enqueue(1)
    end(claim_one(), OutcomeKind.SUCCEEDED, return_value='{"rows": 3}')
    assert "result" not in seen(progress_of(task))
    told = seen(progress_of(task, show_result=True, redirect="/exports/7/"))
    assert (told["result"], told["redirect"]) == ({"rows": 3}, "/exports/7/")


@pytest.mark.django_db
def test_of_a_workflow_one_sees_how_many_parts_have_finished() -> None:
    run = chord([part.s(1), part.s(2), part.s(3)], whole.s()).enqueue()
    progress = progress_of(run)
    Step.objects.filter(workflow_id=run.id, members=3).update(ended=2)
    told = seen(progress)
    assert (told["ended"], told["total"], told["percent"]) == (2, 4, 50.0)
    with CaptureQueriesContext(connection) as looked:
        seen(progress)
    assert len(looked) == 1
    Workflow.objects.update(status="cancelled", finished_at=timezone.now())
    told = seen(progress)
    assert (told["state"], told["ended"]) == ("cancelled", 2)


@pytest.mark.django_db
def test_a_token_of_a_user_is_for_that_user_alone() -> None:
    owner = User.objects.create_user("owner")
    other = User.objects.create_superuser("other")
    progress = progress_of(noop.enqueue(), user=owner)
    for user, status in ((None, 404), (other, 404), (owner, 200)):
        client = Client()
        if user is not None:
            client.force_login(user)
        assert client.get(progress.url).status_code == status


@pytest.mark.django_db
def test_a_token_that_has_expired_shows_nothing_more() -> None:
    made = read(progress_of(noop.enqueue()).token)
    late = Progress(signed(type(made)(id=made.id, is_workflow=False, expires_at=1)))
    assert late.look().text == "This link has expired."
    answer = Client().get(late.url)
    assert (answer.status_code, answer.json()["text"]) == (410, "This link has expired.")
    assert Client().get(Progress("nonsense").url).status_code == 404
    assert Client().post(progress_of(noop.enqueue()).url).status_code == 405


@pytest.mark.django_db
def test_a_look_that_finds_nothing_new_is_304() -> None:
    progress = progress_of(noop.enqueue())
    first = Client().get(progress.url)
    again = Client().get(progress.url, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    claim_one()
    changed = Client().get(progress.url, headers={"If-None-Match": first["ETag"]})
    assert changed.status_code == 200


@pytest.mark.django_db
def test_an_address_looks_ten_times_a_second_at_most() -> None:
    progress, client = progress_of(noop.enqueue()), Client()
    statuses = [client.get(progress.url).status_code for _ in range(40)]
    # A slow machine may take longer than a second for all of them.
    assert statuses[:10] == [200] * 10
    assert 429 in statuses
    refused = client.get(progress.url)
    if refused.status_code == 429:
        assert refused["Retry-After"] == "1"
    assert client.get(progress.url, REMOTE_ADDR="10.0.0.7").status_code == 200


@pytest.mark.django_db
def test_the_fragment_escapes_what_bodies_say_and_names_nothing_else() -> None:
    task = log_in.enqueue("anna", CANARY)
    claimed = claim_one()
    message = "<script>alert(1)</script>" + "x" * 500
    Lease.objects.update(progress=10, progress_message=message)
    progress = progress_of(task)
    page = Client().get(progress.url, headers={"Accept": "text/html"}).content.decode()
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "x" * 201 not in page
    assert 'value="10.0"' in page
    end(claimed, OutcomeKind.FAILED, error_class="E", error_message=CANARY, traceback=CANARY)
    for accept in ("text/html", "application/json"):
        page = Client().get(progress.url, headers={"Accept": accept}).content.decode()
        for hidden in (CANARY, task.name, "anna", "w1", "default"):
            assert hidden not in page.replace(progress.url, "")


@pytest.mark.django_db
def test_the_tag_shows_the_bar_and_loads_the_module_once_it_is_needed() -> None:
    task = noop.enqueue()
    template = Template("{% load taskqueue %}{% task_progress progress %}")
    progress = progress_of(task)
    page = template.render(Context({"progress": progress}))
    assert f'data-taskqueue-progress="{progress.url}"' in page
    assert 'src="static/taskqueue/progress.js"' in page or "taskqueue/progress.js" in page
    assert "<noscript>" in page
    assert "hx-" not in page
    end(claim_one(), OutcomeKind.SUCCEEDED)
    assert "progress.js" not in template.render(Context({"progress": progress}))


@pytest.mark.django_db
def test_htmx_asks_for_the_fragment_until_it_has_finished() -> None:
    template = Template("{% load taskqueue %}{% task_progress progress htmx=True %}")
    progress = progress_of(noop.enqueue(), redirect="/exports/7/")
    page = template.render(Context({"progress": progress}))
    assert f'hx-get="{progress.url}?after=1"' in page
    assert "progress.js" not in page
    asked = {"headers": {"HX-Request": "true"}}
    later = Client().get(f"{progress.url}?after=8", **asked).content.decode()
    assert 'hx-trigger="every 10s"' in later
    end(claim_one(), OutcomeKind.SUCCEEDED)
    last = Client().get(f"{progress.url}?after=10", **asked)
    assert b"hx-get" not in last.content
    assert last["HX-Redirect"] == "/exports/7/"


@pytest.mark.django_db
def test_words_are_those_of_the_language() -> None:
    from django.utils.translation import override

    with override("zh-hans"):
        assert progress_of(noop.enqueue()).look().text != "Waiting: it is next in line"


@pytest.mark.django_db
def test_events_are_refused_where_they_would_hold_a_thread() -> None:
    answer = Client().get(progress_of(noop.enqueue()).url, headers={"Accept": "text/event-stream"})
    assert answer.status_code == 501


@pytest.mark.django_db(transaction=True)
def test_events_tell_each_change_until_the_end() -> None:
    task = noop.enqueue()
    url = progress_of(task).url

    async def follow() -> list[dict[str, Any]]:
        answer: Any = await AsyncClient().get(url, headers={"Accept": "text/event-stream"})
        assert answer.status_code == 200
        assert answer["X-Accel-Buffering"] == "no"
        told: list[dict[str, Any]] = []
        claimed = None
        async for chunk in answer.streaming_content:
            told.append(json.loads(chunk.decode().partition("data: ")[2]))
            if len(told) == 1:
                claimed = await sync_to_async(claim_one)()
            elif len(told) == 2:
                await sync_to_async(end)(claimed, OutcomeKind.SUCCEEDED)
        await sync_to_async(connections.close_all)()  # Those of the thread that it looked in.
        return told

    told = asyncio.run(asyncio.wait_for(follow(), 60))
    assert [each["state"] for each in told] == ["waiting", "running", "succeeded"]
    assert streams._open == 0


@pytest.mark.postgresql_only
@pytest.mark.django_db(transaction=True)
def test_a_stream_keeps_no_connection_between_two_looks() -> None:
    url = progress_of(noop.enqueue()).url

    async def follow() -> bool:
        answer: Any = await AsyncClient().get(url, headers={"Accept": "text/event-stream"})
        async for _ in answer.streaming_content:
            return await sync_to_async(lambda: connection.connection is None)()
        return False

    assert asyncio.run(asyncio.wait_for(follow(), 60))
    assert streams._open == 0


@pytest.mark.django_db
def test_a_process_has_a_bounded_number_of_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST", 0)
    url = progress_of(noop.enqueue()).url

    async def ask() -> Any:
        return await AsyncClient().get(url, headers={"Accept": "text/event-stream"})

    answer = asyncio.run(ask())
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")


@pytest.mark.django_db
def test_a_project_without_the_address_is_told_what_to_add(settings: Any) -> None:
    from django.core.exceptions import ImproperlyConfigured

    settings.ROOT_URLCONF = "tests.progress.no_urls"
    with pytest.raises(ImproperlyConfigured, match=r"include\('taskqueue.progress.urls'\)"):
        progress_of(noop.enqueue(), expires=timedelta(minutes=5)).url  # noqa: B018


@pytest.mark.django_db
@pytest.mark.parametrize("statement", [LOOK_AT_TASK, LOOK_AT_WORKFLOW])
def test_a_look_goes_by_indexes(statement: str) -> None:
    is_postgresql = connection.vendor == "postgresql"
    key = str(uuid4()) if is_postgresql else uuid4().hex
    with connection.cursor() as cursor:
        if is_postgresql:
            # Of empty tables it would rather read all there is.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
        explain = "EXPLAIN" if is_postgresql else "EXPLAIN QUERY PLAN"
        cursor.execute(f"{explain} {statement}", [key])
        plan = [str(row[-1]) for row in cursor.fetchall()]
    text = "\n".join(plan)
    assert "Seq Scan" not in text, text
    assert [line for line in plan if line.startswith("SCAN ") and "head" not in line] == [], text
    if statement == LOOK_AT_TASK:
        assert "taskqueue_task_claim" in text, text
        # Of a lease table with a page of rows the planner may rather sort the few that run.
        sorted_by = [line for line in plan if "Sort Key" in line]
        assert [line for line in sorted_by if "lease" not in line] == [], text
        assert "TEMP B-TREE" not in text, text
