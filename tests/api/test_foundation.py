"""What all addresses of the API have in common."""

from __future__ import annotations

import base64
import json
import time
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.handlers.asgi import ASGIRequest
from django.db.models import F
from django.test import override_settings
from django.test.client import FakePayload
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed

from taskqueue import control
from taskqueue.api.queues import ACTS
from taskqueue.models import Audit, IdempotencyKey, Queue
from tests.api.conftest import ApiClient

pytestmark = pytest.mark.django_db
PAUSE = "queues/mail/pause/"


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """What the answer tells, which must be a problem of that status and code."""
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    told = answer.json()
    assert {*told} >= {"type", "title", "status", "code", "detail", "instance"}
    assert (told["status"], told["code"]) == (status, code)
    return dict(told)


def test_who_is_not_known_is_asked_who_they_are(anonymous: ApiClient) -> None:
    answer = anonymous.look("queues/")
    problem(answer, 401, "not_authenticated")
    assert answer["WWW-Authenticate"]


@override_settings(
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"]
    }
)
def test_it_is_401_also_where_no_way_to_log_in_has_a_header(anonymous: ApiClient) -> None:
    answer = anonymous.look("queues/")
    problem(answer, 401, "not_authenticated")
    assert answer["WWW-Authenticate"]


OPEN_TO_ALL = {
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "DEFAULT_THROTTLE_CLASSES": [],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.FormParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.BrowsableAPIRenderer"],
    "EXCEPTION_HANDLER": "no.such.handler",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_PAGINATION_CLASS": "no.such.pagination",
    "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.AcceptHeaderVersioning",
}


@override_settings(REST_FRAMEWORK=OPEN_TO_ALL)
def test_the_defaults_of_the_project_change_nothing(anonymous: ApiClient, root: ApiClient) -> None:
    problem(anonymous.look("queues/"), 401, "not_authenticated")
    assert root.look("queues/", accept="text/html")["Content-Type"] == "application/json"


@override_settings(
    TASKQUEUE={"API_AUTHENTICATION": ["rest_framework.authentication.BasicAuthentication"]}
)
def test_authentication_can_be_set_for_the_api_alone(root: ApiClient) -> None:
    user = User.objects.get(username="root")
    user.set_password("secret")
    user.save()
    problem(root.look("queues/"), 401, "not_authenticated")
    basic = "Basic " + base64.b64encode(b"root:secret").decode()
    assert root.look("queues/", authorization=basic).status_code == 200
    wrong = "Basic " + base64.b64encode(b"root:guess").decode()
    problem(root.look("queues/", authorization=wrong), 401, "authentication_failed")


def test_a_name_that_no_database_can_hold_is_nobodys(anonymous: ApiClient) -> None:
    basic = "Basic " + base64.b64encode(b"ro\0ot:secret").decode()
    problem(anonymous.look("queues/", authorization=basic), 401, "authentication_failed")


def test_a_session_needs_the_csrf_token() -> None:
    client = ApiClient(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("root"))
    problem(client.act(PAUSE), 403, "permission_denied")
    assert not Queue.objects.filter(paused_at__isnull=False).exists()


def test_who_lacks_the_permission_is_refused(member: Any) -> None:
    problem(member().look("queues/"), 403, "permission_denied")
    problem(member("view_queue").act(PAUSE), 403, "permission_denied")
    problem(member("control_queues").act(PAUSE), 403, "permission_denied")
    assert member("control_queues", "view_queue").act(PAUSE).status_code == 200


def test_a_refusal_names_the_missing_permissions(member: Any) -> None:
    view = "'Can view queue' (taskqueue.view_queue)"
    control = "'Can pause and resume queues' (taskqueue.control_queues)"

    def told(*held: str) -> str:
        return str(problem(member(*held).act(PAUSE), 403, "permission_denied")["detail"])

    assert told() == f"You need the permissions {view} and {control}."
    assert told("view_queue") == f"You need the permission {control}."
    assert told("control_queues") == f"You need the permission {view}."


def test_an_unsupported_method_is_refused_with_the_supported_ones(
    root: ApiClient, anonymous: ApiClient
) -> None:
    answer = root.ask("DELETE", "queues/")
    problem(answer, 405, "method_not_allowed")
    assert "GET" in answer["Allow"]
    problem(anonymous.ask("DELETE", "queues/"), 401, "not_authenticated")


MALFORMED = [
    ("{", "parse_error"),
    (b'{"reason": "\xff"}', "parse_error"),
    ('{"until": NaN}', "parse_error"),
    ('{"until": -Infinity}', "parse_error"),
    ('{"until": 1, "until": 2}', "duplicate_key"),
    ('{"reason": {"a": 1, "a": 2}}', "duplicate_key"),
    ("[" * 100_000, "parse_error"),
    ('{"until": ' + "9" * 5000 + "}", "parse_error"),
]


@pytest.mark.parametrize(("body", "code"), MALFORMED, ids=range(len(MALFORMED)))
def test_a_body_that_is_no_json_is_refused(root: ApiClient, body: str | bytes, code: str) -> None:
    problem(root.act(PAUSE, body), 400, code)
    assert not Queue.objects.exists()


UNFIT = [
    ([], ""),
    ("text", ""),
    (None, ""),
    ({"untl": 5}, "/untl"),
    ({"until": "2030-01-01T00:00:00"}, "/until"),
    ({"until": "10000-01-01T00:00:00Z"}, "/until"),
    ({"until": "0001-01-01T00:00:00+14:00"}, "/until"),
    ({"until": -1}, "/until"),
    ({"until": True}, "/until"),
    ({"until": 10**300}, "/until"),
    ({"until": {}}, "/until"),
    ({"reason": 5}, "/reason"),
    ({"reason": "a\0b"}, "/reason"),
    ({"reason": "\ud800"}, "/reason"),
    ({"reason": "x" * 1001}, "/reason"),
]


@pytest.mark.parametrize(("body", "pointer"), UNFIT, ids=range(len(UNFIT)))
def test_json_that_cannot_be_done_is_refused_with_the_place(
    root: ApiClient, body: Any, pointer: str
) -> None:
    told = problem(root.act(PAUSE, json.dumps(body)), 422, "invalid")
    assert [each["pointer"] for each in told["errors"]] == [pointer]
    assert not Queue.objects.exists()


def test_a_body_of_another_kind_is_refused(root: ApiClient) -> None:
    answer = root.post(f"/api/v1/{PAUSE}", {"until": "5"})
    problem(answer, 415, "unsupported_media_type")


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=100)
def test_a_body_beyond_the_limit_of_the_project_is_refused(root: ApiClient) -> None:
    problem(root.act(PAUSE, {"reason": "x" * 200}), 413, "body_too_large")


def test_an_address_asks_for_nothing_that_there_is_not(root: ApiClient) -> None:
    told = problem(root.look("queues/?page=2"), 400, "invalid")
    assert told["errors"][0]["pointer"] == "/page"


def test_a_matching_etag_is_answered_without_a_body(root: ApiClient) -> None:
    root.act(PAUSE)
    etag = root.look("queues/mail/")["ETag"]
    for given in (etag, f'"other", {etag}', f"W/{etag}", "*"):
        answer = root.look("queues/mail/", if_none_match=given)
        assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", etag)
    control.resume("mail")
    assert root.look("queues/mail/", if_none_match=etag).status_code == 200


def test_many_keys_cost_no_more_than_reading_them(root: ApiClient) -> None:
    names = [f'"name{number}": 1' for number in range(40_000)]
    began = time.process_time()
    problem(root.act(PAUSE, "{" + ", ".join([*names, names[-1]]) + "}"), 400, "duplicate_key")
    told = problem(root.act(PAUSE, "{" + ", ".join(names) + "}"), 422, "invalid")
    assert len(told["errors"]) == 5
    assert time.process_time() - began < 5, "a search of each among all takes minutes"


def test_a_body_without_its_length_is_read_or_refused(root: ApiClient) -> None:
    body = FakePayload(b'{"reason": "said in chunks"}')
    chunked = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    answer = root.generic(
        "POST", f"/api/v1/{PAUSE}", content_type="application/json",
        **{"wsgi.input": body, **chunked},
    )  # fmt: skip
    problem(answer, 411, "length_required")
    assert not Queue.objects.exists()


def test_under_asgi_it_is_read(root: ApiClient) -> None:
    scope = {
        "type": "http", "method": "POST", "path": f"/api/v1/{PAUSE}", "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"host", b"testserver")],
    }  # fmt: skip
    request: Any = ASGIRequest(scope, BytesIO(b'{"reason": "of no known length"}'))
    request.user = User.objects.get()
    request._dont_enforce_csrf_checks = True
    answer = ACTS["pause"].as_view()(request, name="mail")
    assert (answer.status_code, answer.data["pause_reason"]) == (200, "of no known length")


def test_too_many_parameters_are_a_problem_too(root: ApiClient) -> None:
    problem(root.look("queues/?" + "&".join(f"a{n}=1" for n in range(1100))), 400, "malformed")


def test_the_instance_is_a_reference_whatever_is_asked_for(root: ApiClient) -> None:
    told = problem(root.look("queues/%E2%82%AC%20uro/"), 404, "queue_not_found")
    assert told["instance"] == "/api/v1/queues/%E2%82%AC%20uro/"


@override_settings(
    TASKQUEUE={
        "METRICS_TOKEN": "a token of metrics",
        "API_AUTHENTICATION": ["tests.api.test_foundation.Bearer"],
    }
)
def test_the_token_for_metrics_stands_beside_bearers_of_the_project(anonymous: ApiClient) -> None:
    given = anonymous.look("metrics", authorization="Bearer a token of metrics")
    assert given.status_code == 200
    problem(anonymous.look("metrics", authorization="Bearer other"), 401, "authentication_failed")


class Bearer(BaseAuthentication):
    """A project's own, which knows nobody."""

    def authenticate(self, request: Any) -> Any:
        raise AuthenticationFailed("No such token.")

    def authenticate_header(self, request: Any) -> str:
        return "Bearer"


# Idempotency-Key


def test_the_same_key_again_is_told_the_same_and_does_nothing_again(root: ApiClient) -> None:
    first = root.act(PAUSE, {"until": 60}, idempotency_key="one")
    again = root.act(PAUSE, {"until": 60}, idempotency_key="one")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert (again["Idempotency-Replayed"], "Idempotency-Replayed" in first) == ("true", False)
    assert Audit.objects.count() == 1


def test_the_same_key_with_another_request_is_refused(root: ApiClient) -> None:
    root.act(PAUSE, {"until": 60}, idempotency_key="one")
    code = "idempotency_key_reused"
    problem(root.act(PAUSE, {"until": 61}, idempotency_key="one"), 422, code)
    problem(root.act("queues/mail/resume/", {"until": 60}, idempotency_key="one"), 422, "invalid")
    problem(root.act("queues/mail/resume/", idempotency_key="one"), 422, code)
    assert Audit.objects.count() == 1


def test_two_people_may_choose_the_same_key(root: ApiClient, member: Any) -> None:
    other = member("view_queue", "control_queues")
    assert root.act(PAUSE, {"until": 60}, idempotency_key="one").status_code == 200
    assert other.act(PAUSE, {"until": 90}, idempotency_key="one").status_code == 200
    assert Audit.objects.count() == 2


def test_a_refused_request_may_be_repeated_with_its_key(root: ApiClient) -> None:
    resume = "queues/mail/resume/"
    problem(root.act(resume, idempotency_key="one"), 409, "transition_refused")
    assert not IdempotencyKey.objects.exists()
    control.pause("mail")
    assert root.act(resume, idempotency_key="one").status_code == 200


def test_a_key_is_forgotten_after_a_day(root: ApiClient) -> None:
    root.act(PAUSE, {"until": 60}, idempotency_key="one")
    IdempotencyKey.objects.update(created_at=F("created_at") - timedelta(hours=25))
    again = root.act(PAUSE, {"until": 90}, idempotency_key="one")
    assert (again.status_code, "Idempotency-Replayed" in again) == (200, False)
    assert root.act(PAUSE, {"until": 90}, idempotency_key="one")["Idempotency-Replayed"] == "true"


def test_a_stored_answer_is_not_repeated_to_a_user_with_fewer_permissions(member: Any) -> None:
    somebody = member("view_queue", "control_queues", "view_arguments")
    somebody.act(PAUSE, {"until": 60}, idempotency_key="one")
    User.objects.get().user_permissions.remove(Permission.objects.get(codename="view_arguments"))
    again = somebody.act(PAUSE, {"until": 60}, idempotency_key="one")
    problem(again, 422, "idempotency_key_reused")


@override_settings(TASKQUEUE={"API_AUTHENTICATION": ["tests.api.test_foundation.Services"]})
def test_who_has_no_key_of_their_own_cannot_choose_keys_for_requests(anonymous: ApiClient) -> None:
    answer = anonymous.act(PAUSE, {"until": 60}, idempotency_key="one")
    problem(answer, 400, "invalid_idempotency_key")
    assert anonymous.act(PAUSE, {"until": 60}).status_code == 200


class Services(BaseAuthentication):
    """Programs, none of which stands in the database."""

    def authenticate(self, request: Any) -> Any:
        service = User(username="service", is_superuser=True, is_active=True)
        return service, None


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there"])
def test_a_key_that_is_none_is_refused(root: ApiClient, key: str) -> None:
    problem(root.act(PAUSE, idempotency_key=key), 400, "invalid_idempotency_key")
    assert not Queue.objects.exists()


def test_the_root_lists_the_addresses(root: ApiClient, anonymous: ApiClient) -> None:
    told = root.look("").json()
    assert told["tasks"] == "/api/v1/tasks/"
    assert told["ready"] == "/api/v1/healthz/ready"
    assert not {"task", "task-bulk", "root"} & told.keys()
    for name, address in told.items():
        if name not in ("event-stream", "schema", "docs"):
            assert root.get(address).status_code in (200, 400), name
    problem(anonymous.look(""), 401, "not_authenticated")
