"""Who has logged in, without the form."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client


def session_of(user: User) -> dict[str, str]:
    """The cookie of a log-in."""
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    return {"name": name, "value": client.cookies[name].value}
