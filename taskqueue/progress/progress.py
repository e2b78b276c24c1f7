"""The progress of a task or workflow, for a page of the project."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.urls import NoReverseMatch, reverse

from taskqueue.progress.looking import Look, look, refusal
from taskqueue.progress.tokens import (
    Claims,
    Expired,
    Unknown,
    checked_redirect,
    expiry,
    read,
    signed,
)
from taskqueue.results import TaskResult
from taskqueue.results.workflows import WorkflowRun


class Progress:
    """Progress for a page: shown by the tag `task_progress`, or through `url` by other scripts."""

    def __init__(self, token: str) -> None:
        self.token = token

    @property
    def url(self) -> str:
        """The address of JSON, an HTML fragment or server-sent events, whichever is accepted."""
        try:
            return reverse("taskqueue_progress:look", args=[self.token])
        except NoReverseMatch:
            raise ImproperlyConfigured(
                "Progress has no address. Add path('progress/', include('taskqueue.progress.urls'))"
                " to the URLs of the project."
            ) from None

    def look(self) -> Look:
        """Read the progress now, by one query; for an expired or invalid token, say so."""
        try:
            return look(read(self.token))
        except (Expired, Unknown) as error:
            return refusal(error)


def progress_of(
    result: TaskResult[Any] | WorkflowRun,
    *,
    expires: float | timedelta = 3600,
    user: Any = None,
    show_result: bool = False,
    redirect: str = "",
) -> Progress:
    """Return the progress of a task or workflow, for a page of the project.

    It may be looked at for `expires` seconds (or a timedelta), by whoever has its address, or by
    one `user` alone. `show_result` shows what it returned, and `redirect` is a path on the same
    host where the page goes once it has succeeded. Nothing is read from the database. Raises
    ValueError for a duration or path that is not allowed.
    """
    if not isinstance(result, TaskResult | WorkflowRun):
        raise TypeError(f"progress_of() takes a TaskResult or a WorkflowRun, not {result!r}.")
    if user is not None and not hasattr(user, "pk"):
        raise TypeError(f"user must be a user object such as request.user, not {user!r}.")
    if user is not None and user.pk is None:
        raise ValueError("user must have a primary key: an anonymous user is nobody in particular.")
    claims = Claims(
        id=result.id,
        is_workflow=isinstance(result, WorkflowRun),
        expires_at=expiry(expires),
        user="" if user is None else str(user.pk),
        shows_result=show_result,
        redirect=checked_redirect(redirect),
    )
    return Progress(signed(claims))
