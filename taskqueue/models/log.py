"""A log line: what a body said."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from taskqueue.models.parts import LOOSE, VIEW_ONLY
from taskqueue.models.task import Task


class TaskLog(models.Model):
    """One captured line of one attempt."""

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, models.CASCADE, related_name="logs", **LOOSE)
    attempt = models.PositiveIntegerField()
    logged_at = models.DateTimeField()
    level = models.PositiveSmallIntegerField()
    logger = models.CharField(max_length=255, default="")
    message = models.TextField()

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("log line")
        verbose_name_plural = _("log lines")
        # In their order: of a task with many lines the planner would rather read all lines there
        # are by their ids than sort those of the task.
        indexes = [models.Index(fields=["task", "id"], name="taskqueue_tasklog_task")]

    def __str__(self) -> str:
        return self.message
