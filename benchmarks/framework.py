"""A task of Django's Tasks framework, on taskqueue's backend."""

from __future__ import annotations

from typing import Any

import django

task: Any
if django.VERSION >= (6, 0):
    from django.tasks import task
else:
    from django_tasks import task


@task
def noop(number: int = 0) -> None:
    """Nothing."""
