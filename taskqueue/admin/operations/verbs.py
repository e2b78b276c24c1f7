"""What can be done to many tasks at once: the words of it, and what it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from taskqueue.admin.operations.forms import RescheduleForm, StartForm, UpdateForm
from taskqueue.monitoring.counts import Count

Words = Any
"""Text that is translated when it is shown."""


@dataclass(frozen=True, kw_only=True)
class BulkVerb:
    """One that may be done to many tasks; `authority` says by whom."""

    name: str
    label: Words
    title: Words
    effect: Words
    """What becomes of the tasks, in a sentence."""
    allowed: Words
    """To which tasks it can be done."""
    form: type[StartForm] = StartForm
    is_grave: bool = False

    def confirm(self, count: Count) -> str:
        """The words of the button."""
        if count.is_capped and not count.value:
            return str(self.label)
        words = ngettext("%(verb)s: %(count)s task", "%(verb)s: %(count)s tasks", count.value)
        return words % {"verb": self.label, "count": count}


VERBS = {
    verb.name: verb
    for verb in (
        BulkVerb(
            name="retry",
            label=_("Retry"),
            title=_("Retry many tasks"),
            effect=_("They run again with the same arguments; their failures are forgotten."),
            allowed=_("Only finished tasks are retried, and running tasks whose worker is lost."),
        ),
        BulkVerb(
            name="run_now",
            label=_("Run now"),
            title=_("Run many tasks now"),
            effect=_("They do not wait for their time."),
            allowed=_("Only scheduled and retrying tasks are run now."),
        ),
        BulkVerb(
            name="reschedule",
            label=_("Reschedule"),
            title=_("Reschedule many tasks"),
            effect=_("They wait for another time."),
            allowed=_("Only tasks that wait or are ready are rescheduled."),
            form=RescheduleForm,
        ),
        BulkVerb(
            name="update",
            label=_("Change priority or queue"),
            title=_("Change many tasks"),
            effect=_("Their priority, their queue, or both are changed."),
            allowed=_("Only tasks that have not finished are changed."),
            form=UpdateForm,
        ),
        BulkVerb(
            name="cancel",
            label=_("Cancel"),
            title=_("Cancel many tasks"),
            effect=_("What waits ends now; what runs is asked to stop."),
            allowed=_("Only tasks that have not finished are cancelled."),
            is_grave=True,
        ),
        BulkVerb(
            name="stop",
            label=_("Stop"),
            title=_("Stop many tasks"),
            effect=_("They are asked to stop; after a grace they are interrupted, then killed."),
            allowed=_("Only running tasks are stopped."),
            is_grave=True,
        ),
        BulkVerb(
            name="duplicate",
            label=_("Duplicate"),
            title=_("Duplicate many tasks"),
            effect=_("Another task with the same arguments and options is enqueued for each."),
            allowed=_("Any task can be duplicated."),
        ),
        BulkVerb(
            name="delete",
            label=_("Delete"),
            title=_("Delete many tasks"),
            effect=_(
                "They go with their attempts and log lines; only the audit keeps that there were "
                "any. This cannot be undone."
            ),
            allowed=_("Only finished tasks are deleted."),
            is_grave=True,
        ),
    )
}
"""By their names; actions stand in this order."""
