"""The table of verbs on schedules."""

from __future__ import annotations

from functools import partial

from django.utils.translation import gettext_lazy as _

from taskqueue.access.permissions import EDIT_SCHEDULES, ENQUEUE
from taskqueue.engine.control.verb import Verb, verb_table
from taskqueue.engine.schedules.verbs import (
    create_schedule,
    delete_schedule,
    edit_schedule,
    pause_schedule,
    resume_schedule,
    run_schedule,
)

schedule_verb = partial(Verb, noun="schedule", permissions=(EDIT_SCHEDULES,))
# A schedule creates tasks, so these verbs require the permission to enqueue too.
task_making_verb = partial(Verb, noun="schedule", permissions=(EDIT_SCHEDULES, ENQUEUE))

# `disable` is the edit `enabled=False`; a declared schedule can only be removed from the code.
SCHEDULE_VERBS = verb_table(
    task_making_verb(
        name="create",
        function=create_schedule,
        label=_("Create"),
        entry=_("create schedule"),
    ),
    task_making_verb(
        name="edit",
        function=edit_schedule,
        label=_("Edit"),
        entry=_("edit schedule"),
    ),
    schedule_verb(
        name="pause",
        function=pause_schedule,
        label=_("Pause"),
        entry=_("pause schedule"),
        done=_("Schedule %(name)s paused; running tasks continue."),
        help="let nothing more of a schedule run; running tasks continue",
        details="A second pause replaces who and why.",
    ),
    task_making_verb(
        name="resume",
        function=resume_schedule,
        label=_("Resume"),
        entry=_("resume schedule"),
        done=_("Schedule %(name)s resumed."),
        help="end the pause of a schedule; runs of that time are not made up for",
    ),
    task_making_verb(
        name="run_now",
        function=run_schedule,
        label=_("Run now"),
        entry=_("run schedule"),
        done=_("Run of schedule %(name)s requested."),
        help="run a schedule now, in addition to its rule, also while it is paused",
        details="Other arguments are for this run alone. 409 if its overlap policy skips the run.",
    ),
    schedule_verb(
        name="delete",
        function=delete_schedule,
        label=_("Delete"),
        entry=_("delete schedule"),
        done=_("Schedule %(name)s deleted."),
        help="delete a schedule with its history; its tasks stay",
        is_grave=True,
    ),
    schedule_verb(name="disable", label=_("Disable"), entry=_("edit schedule")),
    schedule_verb(name="remove", permissions=(), label=_("Remove"), entry=_("remove schedule")),
)
