"""The Django app."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _


class TaskQueueConfig(AppConfig):
    """A task queue in the project's own database."""

    name = "taskqueue"
    verbose_name = _("Task queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from taskqueue.checks import check_settings, check_transactions
        from taskqueue.schedule_checks import check_schedules

        checks.register(check_settings)
        checks.register(check_transactions, checks.Tags.database)
        checks.register(check_schedules)
