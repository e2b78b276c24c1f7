"""What has a page of its own in the admin, beside the tables: each another look at one of them."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from taskqueue.models.rollup import Rollup
from taskqueue.models.task import Task


class Dashboard(Rollup):
    """How all is."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = verbose_name_plural = _("dashboard")


class Failure(Task):
    """What failed, grouped by error."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = verbose_name_plural = _("failures")


class Performance(Rollup):
    """How long tasks of each name take."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = verbose_name_plural = _("performance")
