"""Every operation of the API, asked with what its schema allows and with what it does not.

Nothing may fail on the server's side, and each answer must be such as the schema says. In the
ordinary run a few cases of some operations are tried, which the seed of the run chooses, the same
ones each time; with TASKQUEUE_FULL=1 of all operations as many as TASKQUEUE_CASES says, a thousand
by default, and others each time.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from django.contrib.auth.models import Group, User
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.db.transaction import atomic, set_rollback
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from taskqueue.access.roles import VIEWER, grant
from tests.admin.everything import Everything, everything
from tests.sample.rest_tasks import tell
from tests.sample.tasks import greet
from tests.sharing_out import DATABASE, IS_FULL, SEED

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
CASES = int(os.environ.get("TASKQUEUE_CASES", "1000" if IS_FULL else "5"))
ONLY = os.environ.get("TASKQUEUE_OPERATION", "")
"""Operations whose method and path hold this."""
FEW_CASES = max(2, CASES // 10)
"""Where most requests are refused."""
PASSWORD = "open sesame"
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.allow_header_conformance,
    checks.ignored_auth,
]
"""All but those that follow several requests, and the one that takes whatever fits the schema for
something that can be done: a rule that never fires fits it too."""
SETTINGS = hypothesis.settings(
    derandomize=not IS_FULL,
    database=None,
    deadline=None,
    phases=[hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.fixture(autouse=True)
def _keep_the_transaction() -> Iterator[None]:
    """Requests end, and so would the connection of the test: Django's own client does the same."""
    for each in (request_started, request_finished):
        each.disconnect(close_old_connections)
    yield
    for each in (request_started, request_finished):
        each.connect(close_old_connections)


@pytest.fixture
def made(settings: Any) -> Everything:
    """A row of each kind, and no limit to how often somebody may ask."""
    settings.ALLOWED_HOSTS = ["localhost"]
    kinds = ("read", "act", "enqueue", "anonymous")
    settings.TASKQUEUE = {"API_THROTTLE_RATES": dict.fromkeys(kinds)}
    made = everything("plain")
    made.rows["type"] = greet
    grant()
    return made


@pytest.fixture
def schema_for(made: Everything) -> Callable[[str], Any]:
    """The schema as somebody in that role gets it, whose requests it will make."""

    def load(role: str) -> Any:
        user = User.objects.create_user(role, password=PASSWORD, is_superuser=role == "root")
        if role == "viewer":
            user.groups.add(Group.objects.get(name=VIEWER.group))
        said = base64.b64encode(f"{role}:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"Basic {said}"}
        app = get_wsgi_application()
        return schemathesis.openapi.from_wsgi("/api/v1/schema/", app, headers=headers), headers

    return load


ROLES = ["root", "viewer", "anonymous"] if IS_FULL or DATABASE == "sqlite" else ["root"]
"""Whom most is refused is asked on SQLite alone, for refusals come before the database; with
TASKQUEUE_FULL=1 on both."""
EACH = 1 if IS_FULL or ONLY else {"sqlite": 2, "postgresql": 3}[DATABASE]
"""One operation of so many is asked, which the seed chooses; with TASKQUEUE_FULL=1 all."""


@pytest.mark.parametrize("role", ROLES)
def test_whatever_is_asked_is_answered_as_the_schema_says(
    role: str, schema_for: Callable[[str], Any], made: Everything
) -> None:
    schema, headers = schema_for(role)
    if role == "anonymous":
        headers = {}
    most = CASES if role == "root" else FEW_CASES
    failures: list[BaseException] = []
    for each in [*schema.get_all_operations()][SEED % EACH :: EACH]:
        operation = each.ok()
        if ONLY not in operation.label:
            continue
        try:
            _try(operation, headers, made, most=most)
        except (Exception, BaseExceptionGroup) as error:
            error.add_note(f"{operation.label}, as {role}")
            failures.append(error)
        if IS_FULL:
            print(f"{role}: {operation.label}: {most} cases", flush=True)
    if failures:
        raise BaseExceptionGroup("Operations that are not as the schema says", failures)


def _try(operation: Any, headers: dict[str, str], made: Everything, *, most: int) -> None:
    real = real_parameters(operation.path, made)
    strategies = [operation.as_strategy(generation_mode=GenerationMode.POSITIVE)]
    # Under WSGI, as here, a stream is not implemented: 501, which the schema tells.
    is_stream = operation.path.endswith("/events/stream/")
    wanted = [each for each in CHECKS if not (is_stream and each is CHECKS[0])]
    if operation.body or operation.query:
        strategies.append(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))

    @hypothesis.settings(SETTINGS, max_examples=most)
    @hypothesis.given(case=st.one_of(strategies), is_real=st.booleans())
    def ask(case: Any, is_real: bool) -> None:
        is_positive = case.meta is None or case.meta.generation.mode is GenerationMode.POSITIVE
        if is_real and is_positive:
            if case.path_parameters:
                case.path_parameters.update(real)
            if isinstance(case.body, dict):
                make_doable(operation.path, case.body, made)
        case.headers.pop("Host", None)  # One that is not allowed is refused before the API.
        case.cookies = {}  # A session that was made up would only confuse who is asking.
        with atomic():
            answer = case.call(headers=headers)
            case.validate_response(answer, checks=wanted, headers=headers)
            set_rollback(True)

    ask()


def real_parameters(path: str, made: Everything) -> dict[str, str]:
    """What leads to a row that is there."""
    kind = path.strip("/").partition("/")[0]
    if kind == "tasks":
        status = "running" if "stop" in path else "scheduled" if "run-now" in path else "failed"
        return {"task_id": str(made.tasks[status].pk)}
    if kind == "workflows":
        kinds = {"resume": "paused ", "retry": "finished ", "resolve": "finished "}
        kind = kinds.get(path.rstrip("/").rpartition("/")[2], "")
        return {"workflow_id": str(made.rows[f"{kind}workflow"].pk)}
    if kind == "operations":
        return {"operation_id": str(made.rows["operation"].pk)}
    if kind == "task-types":
        return {"name": greet.name}
    is_paused = path.endswith("/resume/")
    return {"name": "plain paused" if is_paused else "plain"}


def make_doable(path: str, body: dict[str, Any], made: Everything) -> None:
    """Put what there is into a body that fits the schema, so that more of it can be done."""
    if path == "/operations/":
        ways = [way for way in ("filter", "q", "everything") if body.get(way)]
        for each in ways[1:] if ways else ():
            del body[each]
        if ways:
            body.pop("ids", None)
        else:
            body["ids"] = [str(made.tasks[status].pk) for status in ("failed", "ready")]
    elif path.startswith("/schedules/") and "rule" in body:
        body.update({"task": greet.name, "args": ["Ann"], "kwargs": {}, "options": {}})
    elif path.endswith("/retry/") and "from_step" in body:
        body["from_step"] = "echo"
    elif path.endswith("/resolve/"):
        body["step"] = "echo"
    elif path == "/workflows/":
        for each in body.get("steps", ()):
            each["task"] = tell.name
    elif path == "/tasks/":
        body["name"] = tell.name
    elif path == "/tasks/bulk/":
        for each in body["tasks"]:
            each["name"] = tell.name
