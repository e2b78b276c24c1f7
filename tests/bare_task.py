"""A task of a project that has nothing but our app."""

from __future__ import annotations

import django

if django.VERSION >= (6, 0):
    from django.tasks import task
else:
    from django_tasks import task


@task
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number
