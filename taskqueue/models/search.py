"""A saved search: the text of a search for tasks, under a name that its owner chose."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from taskqueue.models.parts import DatabaseClock

LONGEST_SEARCH_NAME = 100


class SavedSearch(models.Model):
    """Visible to its owner only, unless it is shared with everybody who may view tasks."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_SEARCH_NAME)
    # As it was typed, because `failed_after:2h` means another time each day.
    query = models.TextField()
    # The identity of the owner, which survives a change of name, and the name at that time.
    owner = models.CharField(max_length=150)
    owner_name = models.CharField(max_length=150, default="")
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=DatabaseClock())
    changed_at = models.DateTimeField(db_default=DatabaseClock())

    class Meta:
        default_permissions = ()
        verbose_name = _("saved search")
        verbose_name_plural = _("saved searches")
        permissions = [("manage_searches", "Can share searches, and change those of others")]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="taskqueue_search_unique")
        ]

    def __str__(self) -> str:
        return self.name
