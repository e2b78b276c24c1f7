"""The codes of the reasons why a task has its status, with a sentence for each.

The sentences are in English; the admin's pages translate them.
"""

from __future__ import annotations

from typing import Literal

from django.utils.translation import gettext_noop as _

Code = Literal[
    # Before it runs.
    "blocked", "not_due", "debounced", "retry_due", "due", "deadline_passed", "expired",
    "unknown", "all_paused", "definition_paused", "queue_paused", "unserved", "not_taking",
    "workers_absent", "worker_trouble", "stays",
    "slots_busy", "own_slots_busy", "no_own_slots", "behind", "in_line",
    # Under limits.
    "tags_missing", "queue_full", "limit_full", "own_full", "holder_ends", "limit_zero",
    "rate_used",
    "sequence_halted", "sequence_waits", "sequence_runs", "behind_in_sequence",
    "behind_in_limits", "tenants_ahead",
    # In a workflow.
    "steps_wait", "member_runs", "member_parked", "child_runs", "step_limited", "ends_waiting",
    "advancing", "no_workers", "workflow_paused", "workflow_stopping", "workflow_compensating",
    "workflow_overdue", "workflow_trouble", "workflow_succeeded", "workflow_failed",
    # For several workers.
    "unseated", "more_workers", "too_few_workers", "worker_waits",
    # While it runs.
    "running", "claimed", "lease_over", "worker_lost", "worker_replaced", "lost_holds",
    "stop_requested", "wedged", "changing",
    # Afterwards.
    "succeeded", "failed", "cancelled", "no_attempts_left", "no_crashes_left", "key_held",
]  # fmt: skip

# Reasons that end by themselves at their time, unless somebody changes that.
CLEARING: frozenset[Code] = frozenset({
    "not_due", "debounced", "retry_due", "all_paused", "definition_paused", "queue_paused",
    "rate_used", "worker_waits", "lost_holds", "key_held",
})  # fmt: skip

SENTENCES: dict[Code, str] = {
    "blocked": _("It waits for other tasks of its workflow."),
    "not_due": _("It is not due until {moment}."),
    "debounced": _("It is debounced: it runs at {moment} unless it is enqueued again before."),
    "retry_due": _("Its next attempt is due at {moment}."),
    "due": _("It has been due since {moment}. The next running worker makes it ready."),
    "deadline_passed": _(
        "Its deadline passed at {moment}. It is no longer started; a running worker ends it."
    ),
    "expired": _("It expired at {moment}. It is no longer started; a running worker ends it."),
    "unknown": _(
        "Since {moment} only workers whose code does not know {subject} have claimed it. It"
        " fails at {fails_at} unless a worker knows it by then."
    ),
    "all_paused": _("Everything is paused: no worker claims any task."),
    "definition_paused": _("The definition {subject} is paused."),
    "queue_paused": _("The queue {subject} is paused."),
    "unserved": _("No running worker serves the queue {subject}."),
    "not_taking": _(
        "The workers of the queue {subject} are quiet or stopping: they claim no new tasks."
    ),
    "workers_absent": _("Only certain workers may run it, and none of them is running: {subject}."),
    "worker_trouble": _("The worker {subject} cannot work: {trouble}"),
    "stays": _(
        "Its next attempt is for the worker {subject}, which ran the last one, while that takes"
        " tasks."
    ),
    "slots_busy": _("All {slots} slots of the workers of the queue {subject} are busy."),
    "own_slots_busy": _(
        "All {slots} slots that the workers of its queue may give to {subject} are busy."
    ),
    "no_own_slots": _("No running worker of its queue has a slot for {subject}."),
    "behind": _(
        "Tasks ahead of it in the queue {subject}: {ahead}; with higher priority: {higher}."
    ),
    "in_line": _("It is next: it runs as soon as a worker of its queue has a free slot."),
    "tags_missing": _("No running worker of the queue {queue} has the tags {subject}."),
    "queue_full": _(
        "The queue {subject} is full ({most} at once). Tasks that run: {number}; the oldest is"
        " {task}, since {moment}."
    ),
    "limit_full": _(
        "The limit {subject} ({most}) is full. Tasks that hold it: {number}; the oldest is {task},"
        " since {moment}."
    ),
    "own_full": _(
        "The limit {subject} ({most}) is full on {key}. Tasks that hold it: {number}; the oldest"
        " is {task}, since {moment}."
    ),
    "holder_ends": _(
        "The task {task}, which holds {subject}, reaches its timeout or its deadline at {moment}."
    ),
    "limit_zero": _("The limit {subject} is set to 0, so all its tasks wait."),
    "rate_used": _("The rate {rate} of {subject} is used up: the next start is at {moment}."),
    "sequence_halted": _(
        "Its sequence is halted, because the task {subject} failed at {moment}. Retry that task,"
        " or release the sequence."
    ),
    "sequence_waits": _(
        "The task {subject} of its sequence comes first. It is {status}, and due at {moment}."
    ),
    "sequence_runs": _("The task {subject} of its sequence comes first. It is {status}."),
    "behind_in_sequence": _("Tasks ahead of it in its sequence: {number}."),
    "behind_in_limits": _("Tasks ahead of it under the same limits: {number}."),
    "tenants_ahead": _("Tenants that have their turn on the queue {subject} before: {number}."),
    "steps_wait": _("It waits for these steps of its workflow: {subject}."),
    "member_runs": _(
        "The step {subject} is running. Tasks that have ended: {ended} of {members}. The oldest of"
        " those that have not is {task}, which is {status}."
    ),
    "member_parked": _(
        "The task {task} of the step {subject} has been parked since {moment}: no worker that"
        " claimed it knows it."
    ),
    "child_runs": _("The step {subject} waits for the workflow {workflow}, which is {status}."),
    "step_limited": _(
        "The step {subject} has at most {most} tasks at once: {unsent} more wait to be enqueued."
    ),
    "ends_waiting": _("Tasks of the workflow whose end is still to be counted: {number}."),
    "advancing": _("The next running worker moves the workflow on."),
    "no_workers": _("No workers are running. One of them would move the workflow on."),
    "workflow_paused": _("The workflow has been paused since {moment}."),
    "workflow_stopping": _("The workflow was asked to stop at {moment}."),
    "workflow_compensating": _("The workflow undoes the steps that had succeeded."),
    "workflow_overdue": _(
        "The deadline of the workflow passed at {moment}; a running worker ends it."
    ),
    "workflow_trouble": _("The workflow could not be moved on: {trouble}"),
    "workflow_succeeded": _("It succeeded at {moment}."),
    "workflow_failed": _("It failed at {moment}."),
    "unseated": _(
        "It is to run on every worker of the queue {subject}; no worker has seen it yet."
    ),
    "more_workers": _(
        "It is to run on {wanted} workers. Done: {done}, running: {running}, open: {open}."
    ),
    "too_few_workers": _(
        "It needs {open} more workers of the queue {subject}, but only {able} others that may"
        " run it are running."
    ),
    "worker_waits": _("The worker {subject} tries it again at {moment}; other workers go first."),
    "running": _(
        "The worker {subject} has been running it since {moment}, as attempt {attempt}. Its"
        " lease expires at {expires_at} unless it is renewed."
    ),
    "claimed": _(
        "The worker {subject} claimed it at {moment}, as attempt {attempt}. Its"
        " lease expires at {expires_at} unless it is renewed."
    ),
    "lease_over": _(
        "The lease of the worker {subject} expired at {moment}. The next running worker takes"
        " the task over."
    ),
    "worker_lost": _("The worker {subject} no longer exists."),
    "worker_replaced": _(
        "Another process has taken the name of the worker {subject} since it claimed the task."
    ),
    "lost_holds": _(
        "The lease keeps other workers from the task until {moment}. To end it at once, stop,"
        " cancel or retry the task. Its code may still be running if the worker's host is only"
        " disconnected."
    ),
    "stop_requested": _("It was asked to stop at {moment}."),
    "wedged": _(
        "It has produced no output for far longer than similar tasks; noticed at {moment}."
    ),
    "changing": _("It is changing right now: look again."),
    "succeeded": _("It succeeded at {moment}, in attempt {attempt}."),
    "failed": _("It failed at {moment}."),
    "cancelled": _("It was cancelled at {moment}."),
    "no_attempts_left": _("{most} of {most} attempts failed."),
    "no_crashes_left": _("{most} attempts were lost, the maximum."),
    "key_held": _("It holds its unique key until {moment}."),
}
# Alternative sentences: the first one whose values are all known is used.
FULLER: dict[Code, tuple[str, ...]] = {
    "retry_due": (
        _("Its next attempt is due at {moment}: attempt {attempt} ended with {subject}."),
    ),
    "all_paused": (
        _("Everything is paused until {moment}, by {by}: {reason}"),
        _("Everything is paused until {moment}, by {by}."),
        _("Everything is paused until {moment}."),
        _("Everything is paused, by {by}: {reason}"),
        _("Everything is paused, by {by}."),
    ),
    "definition_paused": (
        _("The definition {subject} is paused until {moment}, by {by}: {reason}"),
        _("The definition {subject} is paused until {moment}, by {by}."),
        _("The definition {subject} is paused until {moment}."),
        _("The definition {subject} is paused, by {by}: {reason}"),
        _("The definition {subject} is paused, by {by}."),
    ),
    "queue_paused": (
        _("The queue {subject} is paused until {moment}, by {by}: {reason}"),
        _("The queue {subject} is paused until {moment}, by {by}."),
        _("The queue {subject} is paused until {moment}."),
        _("The queue {subject} is paused, by {by}: {reason}"),
        _("The queue {subject} is paused, by {by}."),
    ),
    "behind": (_("At least {at_least} tasks are ahead of it in the queue {subject}."),),
    "limit_full": (
        _(
            "The limit {subject} ({most}) is full for {key}. Tasks that hold it: {number}; the"
            " oldest is {task}, since {moment}."
        ),
    ),
    "rate_used": (
        _("The rate {rate} of {subject} is used up for {key}: the next start is at {moment}."),
    ),
    "worker_lost": (_("The worker {subject} has sent no heartbeat since {moment}."),),
    "workflow_paused": (
        _("The workflow has been paused since {moment}, by {by}: {reason}"),
        _("The workflow has been paused since {moment}, by {by}."),
        _("The workflow has been paused since {moment}: {reason}"),
    ),
    "workflow_stopping": (
        _("{subject} asked the workflow to stop at {moment}: {reason}"),
        _("{subject} asked the workflow to stop at {moment}."),
        _("The workflow was asked to stop at {moment}: {reason}"),
    ),
    "workflow_failed": (
        _("It failed at {moment} in the step {subject} with {error}: {message}"),
        _("It failed at {moment} with {error}: {message}"),
    ),
    "stop_requested": (
        _("{subject} asked it to stop at {moment}: {reason}"),
        _("{subject} asked it to stop at {moment}."),
        _("It was asked to stop at {moment}: {reason}"),
    ),
    "failed": (
        _("It failed at {moment} with {subject}: {message}"),
        _("It failed at {moment} with {subject}."),
    ),
    "cancelled": (
        _("It was cancelled at {moment} by {subject}: {reason}"),
        _("It was cancelled at {moment} by {subject}."),
        _("It was cancelled at {moment}: {reason}"),
    ),
}
