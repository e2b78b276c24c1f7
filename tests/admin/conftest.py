"""Who looks at the admin, and at what."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

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
