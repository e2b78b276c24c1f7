"""Buttons that create something: each page has an id for it, so that pressing twice acts once.

The form has the field `once` (`{% taskqueue_once %}` in templates). Its value and all others that
are sent make the id of the task that is made, or of the request for a run of a schedule: a page
that is sent again with other values acts again. What has no such id is done within `pressed_once`,
which keeps the id as REST keeps an Idempotency-Key.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.transaction import atomic
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from taskqueue.access.users import identity_of
from taskqueue.admin.acts import ActsAdmin, ReasonForm
from taskqueue.core.uuid7 import uuid7, uuid7_like
from taskqueue.engine.connections import project_connection
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.idempotency import Answer, first_answer, keep_answer
from taskqueue.exceptions import IdempotencyKeyReused, RequestedBefore, TaskQueueError

# Seconds for which a page may stay open, because its id becomes a task's id, and ids sort by time.
OLDEST = 24 * 3600
# Seconds by which the clock of the process that made the page may be ahead.
AHEAD = 300


class OnceForm(ReasonForm):
    """A list's choice of an action, with the id for what the action creates."""

    once = forms.CharField(label="", required=False, initial=uuid7, widget=forms.HiddenInput)


def once_of(request: HttpRequest) -> UUID | None:
    """Return the id for what a button makes with the values that were sent; None without a page's.

    Raises `TaskQueueError`, in the user's language, if no page was given this id recently.
    """
    given = request.POST.get("once", "")
    if not given:
        return None
    try:
        found = UUID(given)
    except ValueError:
        found = UUID(int=0)
    age = time.time() - (found.int >> 80) / 1000
    if found.version != 7 or not -AHEAD <= age <= OLDEST:
        raise TaskQueueError(_("This form had expired and has been refreshed. Try again."))
    return uuid7_like(found, _digest(request))


def _digest(request: HttpRequest) -> bytes:
    """Return a digest of what was sent, the page's id with it.

    Without the rows that were chosen in a list: each of them is acted on once.
    """
    left_out = ("csrfmiddlewaretoken", ACTION_CHECKBOX_NAME)
    sent = sorted((name, texts) for name, texts in request.POST.lists() if name not in left_out)
    # With SECRET_KEY: the id is shown to more people than what was sent.
    return salted_hmac("taskqueue.once", json.dumps(sent), algorithm="sha256").digest()


class PressedBefore(RequestedBefore):
    """The button of that page was pressed before; `made` is what that press created."""

    def __init__(self, made: str) -> None:
        super().__init__("This was already done.")
        self.made = made


@dataclass
class Press:
    """One press of a button, and the key of what it creates."""

    made: str = ""


@contextmanager
def pressed_once(request: HttpRequest) -> Iterator[Press]:
    """Run the block in a transaction, once for each page that was shown.

    Raises `PressedBefore` at the second press with the same values. What is refused can be pressed
    again.
    """
    given = once_of(request)
    if given is None:
        yield Press()
        return
    press, connection, key = Press(), project_connection(), _key(request, given)
    with atomic(using=connection.alias):
        try:
            first = first_answer(connection, **key, fingerprint=_fingerprint(request))
        except IdempotencyKeyReused:
            raise TaskQueueError(
                _("This form had expired and has been refreshed. Try again.")
            ) from None
        if first is not None:
            raise PressedBefore(first.body)
        yield press
        keep_answer(connection, Answer(status=302, body=press.made), **key)


def made_before(request: HttpRequest) -> str:
    """Return what an earlier press created; empty if there was none.

    This is for a form that is refused because what it should create already exists.
    """
    try:
        with pressed_once(request):
            raise LookupError
    except PressedBefore as error:
        return error.made
    except (LookupError, TaskQueueError):
        return ""


class ActsOnce(ActsAdmin):
    """Runs the verbs in `once` once for each page."""

    once: frozenset[str] = frozenset()

    def do(self, request: HttpRequest, verb: Verb, key: Any, **arguments: Any) -> Any:
        """Run the verb. Raises `RequestedBefore` for the second press of a verb that runs once."""
        if verb.name not in self.once:
            return super().do(request, verb, key, **arguments)
        with pressed_once(request):
            return super().do(request, verb, key, **arguments)


def _key(request: HttpRequest, given: UUID) -> dict[str, str]:
    """Return the key of the user's press of that page; it never equals a key of REST."""
    actor = hashlib.sha256(f"admin {identity_of(request.user)}".encode()).hexdigest()
    return {"actor": actor, "key": str(given)}


def _fingerprint(request: HttpRequest) -> str:
    return hashlib.sha256(request.path.encode()).hexdigest()
