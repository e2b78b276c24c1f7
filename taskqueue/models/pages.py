"""Proxy models for admin pages that are not tables."""

from django.utils.translation import gettext_lazy as _

from taskqueue.models.rollup import Rollup
from taskqueue.models.task import Task


class Dashboard(Rollup):
    """The overview."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = verbose_name_plural = _("dashboard")


class Failure(Task):
    """Failed tasks, grouped by error."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = verbose_name_plural = _("failures")


class Performance(Rollup):
    """Run times by task name."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = verbose_name_plural = _("performance")
