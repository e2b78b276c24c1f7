"""What the audit tells of, in people's language."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

ACTS: dict[str, Any] = {
    "enqueue": _("enqueue"),
    "retry": _("retry"),
    "run_now": _("run now"),
    "reschedule": _("reschedule"),
    "update": _("change"),
    "cancel": _("cancel"),
    "stop": _("stop"),
    "duplicate": _("duplicate"),
    "delete": _("delete"),
    "prune": _("prune"),
    "pause": _("pause"),
    "resume": _("resume"),
    "quiet_worker": _("quiet worker"),
    "resume_worker": _("resume worker"),
    "stop_worker": _("stop worker"),
    "kill_worker": _("kill worker"),
    "create schedule": _("create schedule"),
    "edit schedule": _("edit schedule"),
    "remove schedule": _("remove schedule"),
    "pause schedule": _("pause schedule"),
    "resume schedule": _("resume schedule"),
    "run schedule": _("run schedule"),
    "delete schedule": _("delete schedule"),
    "start operation": _("start operation"),
    "cancel operation": _("cancel operation"),
}
"""By the verb of a line; a worker of another version may write others."""


def act_word(verb: str) -> Any:
    """What the verb is called."""
    return ACTS.get(verb, verb)
