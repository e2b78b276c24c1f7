"""Counts of workflows since the beginning: their ends, and their repairs."""

from __future__ import annotations

from enum import StrEnum

from django.db import models

from taskqueue.core.workflow_states import WorkflowStatus
from taskqueue.models.parts import choices, one_of
from taskqueue.models.workflow import LONGEST_NAME


class Counted(StrEnum):
    """A kind of count."""

    # Workflows that ended, by their status.
    SUCCEEDED = WorkflowStatus.SUCCEEDED.value
    FAILED = WorkflowStatus.FAILED.value
    CANCELLED = WorkflowStatus.CANCELLED.value
    # Steps whose counts were wrong, and were corrected.
    REPAIRED = "repaired"


class WorkflowCount(models.Model):
    """A number of what is counted of the workflows with one name; rows are added up.

    Written in the transaction that ends or repairs the workflow. Nobody waits for another, as they
    would for a number that all raise: a duty makes few rows of many.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME)
    what = models.CharField(max_length=10, choices=choices(Counted))
    number = models.PositiveBigIntegerField(default=1)
    # From the enqueue to the end, of all of them together.
    seconds = models.FloatField(default=0.0)
    # Whether it is made of many rows; all names behind the first so many share such rows.
    is_sum = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        constraints = [one_of("what", Counted, name="taskqueue_workflowcount_what")]

    def __str__(self) -> str:
        return f"{self.number} {self.what} of {self.name}"
