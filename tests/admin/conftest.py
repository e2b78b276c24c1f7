"""Who looks at the admin, and at what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.transaction import atomic, set_rollback
from django.test import Client

from taskqueue.access.roles import VIEWER
from tests.admin.everything import Everything, everything
from tests.admin.rows import Rows, make_rows

LogIn = Callable[..., Client]


@pytest.fixture
def rows(db: None) -> Rows:
    """One row of each kind."""
    return make_rows()


@pytest.fixture
def log_in_as(db: None) -> LogIn:
    """A client of a user who has the role and, in the app, these permissions besides."""

    def log_in(role: str, *permissions: str) -> Client:
        client = Client()
        if role == "anonymous":
            return client
        user = User.objects.create_user(
            "user", is_staff=role != "user", is_superuser=role == "superuser"
        )
        granted = Permission.objects.filter(content_type__app_label="taskqueue")
        if role != "viewer":
            granted = granted.filter(codename__in=permissions)
        elif not permissions:
            granted = granted.filter(codename__startswith="view_").exclude(
                codename="view_arguments"
            )
        else:
            granted = granted.filter(codename__in=permissions)
        user.user_permissions.set(granted)
        client.force_login(user)
        return client

    return log_in


@pytest.fixture(scope="module")
def plain(django_db_setup: None, django_db_blocker: Any) -> Iterator[Everything]:
    """A row of each kind and state, and clients of who looks at it."""
    with django_db_blocker.unblock(), atomic():
        rows = everything("plain")
        root = User.objects.create_superuser("root")
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.set(
            Permission.objects.filter(
                content_type__app_label="taskqueue", codename__in=VIEWER.permissions
            )
        )
        for user in (root, viewer):
            client = rows.rows[user.username] = Client()
            client.force_login(user)
        rows.rows["strict"] = Client(enforce_csrf_checks=True)
        rows.rows["strict"].force_login(root)
        yield rows
        set_rollback(True)
