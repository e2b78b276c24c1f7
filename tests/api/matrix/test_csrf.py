"""With a session, changes need a CSRF token; with other authentication they do not."""

from __future__ import annotations

import base64

import pytest
from django.contrib.auth.models import User
from django.db.transaction import atomic, set_rollback
from django.test import Client

from tests.admin.everything import Everything
from tests.admin.matrix.stored import no_writes, stored
from tests.api.matrix.cells import address, body_of, knock
from tests.api.matrix.table import ACTS

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PASSWORD = "open sesame"


@pytest.fixture
def careful() -> Client:
    """A browser whose requests are checked as those of real ones are."""
    User.objects.create_superuser("careful", password=PASSWORD)
    return Client(enforce_csrf_checks=True)


def test_a_session_changes_nothing_without_the_token(careful: Client, made: Everything) -> None:
    careful.force_login(User.objects.get(username="careful"))
    before = stored()
    with no_writes():
        for route, ask in ACTS:
            answer = knock(careful, ask.method, address(route, ask, made), body_of(ask, made))
            assert answer.status_code == 403, route
            assert "CSRF" in answer.json()["detail"], route
    assert stored() == before


def test_who_says_who_they_are_by_a_header_needs_no_token(
    careful: Client, made: Everything
) -> None:
    said = base64.b64encode(f"careful:{PASSWORD}".encode()).decode()
    for route, ask in ACTS:
        with atomic():
            answer = knock(
                careful, ask.method, address(route, ask, made), body_of(ask, made),
                authorization=f"Basic {said}",
            )  # fmt: skip
            assert answer.status_code == ask.answers, (route, answer.content)
            set_rollback(True)
