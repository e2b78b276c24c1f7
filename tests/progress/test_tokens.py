"""Tokens: what they let somebody look at, and that they always expire."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core import signing
from django.test import override_settings

from taskqueue.progress import progress_of
from taskqueue.progress.tokens import SALT, Claims, Expired, Unknown, checked_redirect, read, signed
from tests.sample.tasks import noop

pytestmark = pytest.mark.django_db
SOON = int(time.time()) + 3600


def claims(**values: Any) -> Claims:
    return Claims(**{"id": uuid4(), "is_workflow": False, "expires_at": SOON, **values})


def test_a_token_says_what_was_signed() -> None:
    made = claims(user="7", shows_result=True, redirect="/exports/?a=b")
    assert read(signed(made)) == made


@pytest.mark.parametrize("expires", [0, -1, None, float("inf"), float("nan"), timedelta(days=31)])
def test_a_token_without_an_end_is_not_made(expires: Any) -> None:
    with pytest.raises(ValueError, match="expires must be"):
        progress_of(noop.enqueue(), expires=expires)


@pytest.mark.parametrize(
    "values",
    [
        [uuid4().hex, 0],
        [uuid4().hex, 0, None, "", 0, ""],
        [uuid4().hex, 0, "never", "", 0, ""],
        [uuid4().hex, 0, "", 0, ""],
        {"id": uuid4().hex},
        "nonsense",
        7,
    ],
)
def test_a_token_without_an_end_is_refused_whoever_signed_it(values: Any) -> None:
    with pytest.raises(Unknown):
        read(signing.dumps(values, salt=SALT, compress=True))


def test_a_token_whose_time_is_over_is_refused() -> None:
    with pytest.raises(Expired):
        read(signed(claims(expires_at=int(time.time()) - 1)))


@pytest.mark.parametrize("made", ["", "x", "a:b:c", "😀" * 3000])
def test_an_unsigned_token_is_refused(made: str) -> None:
    with pytest.raises(Unknown):
        read(made)


def test_a_token_is_bound_to_its_purpose_and_cannot_be_changed() -> None:
    other = signing.dumps([uuid4().hex, 0, SOON, "", 1, ""], salt="of something else")
    token = signed(claims())
    for each in (other, token[:-1] + ("A" if token[-1] != "A" else "B"), "A" + token):
        with pytest.raises(Unknown):
            read(each)


def test_there_need_be_no_redirect() -> None:
    assert (checked_redirect(""), checked_redirect(None)) == ("", "")


def test_keys_rotate() -> None:
    with override_settings(SECRET_KEY="an older key of the project"):
        token = signed(claims())
    with pytest.raises(Unknown):
        read(token)
    with override_settings(SECRET_KEY_FALLBACKS=["an older key of the project"]):
        assert read(token).expires_at == SOON


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "javascript:alert(1)",
        "exports/",
        "/" + "x" * 500,
        "/a\r\nX: y",
        5,
        True,
    ],
)
def test_a_redirect_leads_to_the_same_host_only(path: Any) -> None:
    with pytest.raises(ValueError, match="redirect must be"):
        checked_redirect(path)
    with pytest.raises(Unknown):
        read(signed(claims(redirect=path)))


def test_a_token_is_for_tasks_and_workflows_of_somebody() -> None:
    with pytest.raises(TypeError, match="TaskResult"):
        progress_of("a task")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="primary key"):
        progress_of(noop.enqueue(), user=AnonymousUser())
    with pytest.raises(TypeError, match=r"a user object such as .*, not 5"):
        progress_of(noop.enqueue(), user=5)
