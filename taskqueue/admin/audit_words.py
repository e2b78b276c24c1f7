"""Words for the verbs of audit entries, in the user's language."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from taskqueue.models import Audit

ACTS: dict[tuple[str, str], Any] = {
    ("task", "enqueue"): _("enqueue"),
    ("task", "retry"): _("retry"),
    ("task", "run_now"): _("run now"),
    ("task", "reschedule"): _("reschedule"),
    ("task", "update"): _("change"),
    ("task", "cancel"): _("cancel"),
    ("task", "stop"): _("stop"),
    ("task", "duplicate"): _("duplicate"),
    ("task", "delete"): _("delete"),
    ("", "prune"): _("prune"),
    ("queue", "pause"): _("pause"),
    ("queue", "resume"): _("resume"),
    ("worker", "quiet"): _("quiet worker"),
    ("worker", "resume"): _("resume worker"),
    ("worker", "stop"): _("stop worker"),
    ("worker", "kill"): _("kill worker"),
    ("schedule", "create"): _("create schedule"),
    ("schedule", "edit"): _("edit schedule"),
    ("schedule", "remove"): _("remove schedule"),
    ("schedule", "pause"): _("pause schedule"),
    ("schedule", "resume"): _("resume schedule"),
    ("schedule", "run_now"): _("run schedule"),
    ("schedule", "delete"): _("delete schedule"),
    ("operation", "start"): _("start operation"),
    ("operation", "cancel"): _("cancel operation"),
}
"""By noun and verb; a worker of another version may write others."""


def act_word(entry: Audit) -> Any:
    """Return the words for the verb of an entry."""
    return ACTS.get((entry.noun, entry.verb), entry.verb)
