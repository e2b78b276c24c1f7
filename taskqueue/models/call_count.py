"""Counts of calls that a debounce, a throttle or a capacity turned away, since the beginning."""

from __future__ import annotations

from enum import StrEnum

from django.db import models

from taskqueue.models.parts import choices, one_of
from taskqueue.models.task import LONGEST_NAME


class TurnedAway(StrEnum):
    """The outcome of a call that made no task, or for which another task made way."""

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

    Written in the transaction of the call. Nobody waits for another, as they would for a number
    that all raise: a duty makes few rows of many.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME)
    what = models.CharField(max_length=10, choices=choices(TurnedAway))
    number = models.PositiveBigIntegerField(default=1)
    # Whether it is made of many rows; all names behind the first so many share such rows.
    is_sum = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        constraints = [one_of("what", TurnedAway, name="taskqueue_callcount_what")]

    def __str__(self) -> str:
        return f"{self.number} {self.what} of {self.name}"
