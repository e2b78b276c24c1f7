"""Counts of calls that a debounce, a throttle or a capacity turned away, since the beginning."""

from __future__ import annotations

from enum import StrEnum

from django.db import models

from taskqueue.models.parts import choices, one_of
from taskqueue.models.task import LONGEST_NAME


class TurnedAway(StrEnum):
    """The outcome of a call that created no task, or that replaced another task."""

    # A waiting task got its arguments, and was put off.
    DEBOUNCED = "debounced"
    # A throttle dropped it.
    THROTTLED = "throttled"
    # A full capacity dropped it, refused it, or cancelled the oldest waiting task for it.
    DROPPED = "dropped"
    REFUSED = "refused"
    REPLACED = "replaced"


class CallCount(models.Model):
    """A number of calls of one definition; rows are added up.

    A row is written in the transaction of the call. So no call waits for another, as it would for a
    shared counter; a duty merges the rows.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME)
    what = models.CharField(max_length=10, choices=choices(TurnedAway))
    number = models.PositiveBigIntegerField(default=1)
    # Whether it is a merged row; names beyond the first ones share such rows.
    is_sum = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        constraints = [one_of("what", TurnedAway, name="taskqueue_callcount_what")]

    def __str__(self) -> str:
        return f"{self.number} {self.what} of {self.name}"
