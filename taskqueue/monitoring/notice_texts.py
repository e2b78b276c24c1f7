"""Sentences and remedies of conditions that need attention, by code, in English.

Each is marked for translation as a whole; the dashboard has its own sentences, with links.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from django.utils.translation import gettext_noop

Code = Literal[
    "no_worker", "unserved_queue", "paused_with_waiting", "stalled", "failing", "absent_workers",
    "too_few_workers", "parked", "schedule_trouble", "schedule_paused_itself", "lost_worker",
    "worker_trouble", "wedged", "lost_holds", "all_paused", "definition_paused", "late_queue",
    "deep_queue", "schedule_overdue", "growing_backlog", "absent_tags", "failure_jump", "new_error",
    "long_run", "halted", "doctor", "heartbeat_failing",
]  # fmt: skip


# Of a finding of `doctor`, and of one that depends on the host, if no worker has run it for long.
OLD_FINDING = gettext_noop("The doctor found {age} ago: {detail}")
OLD_FINDING_ON_HOST = gettext_noop("The doctor found on {host} {age} ago: {detail}")


class Text(NamedTuple):
    """The sentence and the remedy of a code."""

    sentence: str
    remedy: str
    # The sentence if the usual time, the class of the error or the remaining time is not known, or
    # if a finding depends on the host.
    otherwise: str = ""
    # The remedy if the tasks belong to workflows, and if only some of them do.
    remedy_in_workflow: str = ""
    remedy_of_both: str = ""


TEXTS: dict[Code, Text] = {
    "no_worker": Text(
        gettext_noop("No workers are running. Waiting tasks: {count}."),
        gettext_noop("Start one: manage.py runworker."),
    ),
    "unserved_queue": Text(
        gettext_noop("No running worker serves the queue {subject}. Waiting tasks: {count}."),
        gettext_noop("Start a worker with --queues {subject}, or one without --queues."),
    ),
    "all_paused": Text(
        gettext_noop("Everything is paused{detail}: no worker claims any task."),
        gettext_noop("manage.py taskqueue resume --all, unless the pause is still needed."),
    ),
    "definition_paused": Text(
        gettext_noop("The definition {subject} is paused{detail}."),
        gettext_noop(
            "manage.py taskqueue resume --definition {subject}, unless the pause is still needed."
        ),
    ),
    "paused_with_waiting": Text(
        gettext_noop("The queue {subject} is paused. Waiting tasks: {count}."),
        gettext_noop("manage.py taskqueue resume {subject}, unless the pause is still needed."),
    ),
    "stalled": Text(
        gettext_noop(
            "No task of the queue {subject} starts, though a worker has free slots. Waiting tasks:"
            " {count}."
        ),
        gettext_noop("Run manage.py taskqueue why ID for one of them, and read the workers' logs."),
    ),
    "late_queue": Text(
        gettext_noop(
            "The oldest task of the queue {subject} has waited {age}, and its workers are busy."
            " Waiting tasks: {count}."
        ),
        gettext_noop(
            "Start more workers for the queue, or see what takes so long: manage.py taskqueue stats"
            " --queue {subject}."
        ),
    ),
    "deep_queue": Text(
        gettext_noop("Very many tasks wait in the queue {subject}: {count}."),
        gettext_noop(
            "Start more workers for the queue, or find what enqueues so many:"
            ' manage.py taskqueue list "queue:{subject} status:ready".'
        ),
    ),
    "growing_backlog": Text(
        gettext_noop(
            "The backlog of the queue {subject} grows: {total} of the waiting tasks came within the"
            " last 15 minutes, in which {detail} attempts ended. Waiting tasks: {count}."
        ),
        gettext_noop(
            "Start more workers for the queue, or find what enqueues so many:"
            " manage.py taskqueue stats --queue {subject}."
        ),
    ),
    "absent_tags": Text(
        gettext_noop(
            "Tasks of the queue {subject} require the tags {detail}, which no running worker of the"
            " queue has."
        ),
        "manage.py runworker --queues {subject} --tags {tags}",
    ),
    "failure_jump": Text(
        gettext_noop(
            "Of {subject}, {count} of {total} attempts failed within the last 15 minutes; at this"
            " hour of the past days, {detail} did."
        ),
        gettext_noop(
            "Find what has changed, such as a deploy:"
            ' manage.py taskqueue list "name:{subject} status:failed,retrying".'
        ),
    ),
    "new_error": Text(
        gettext_noop(
            "A new kind of error: tasks named {subject} fail with {detail}. Failed tasks: {count}."
            " The first, {example}, failed {age} ago."
        ),
        gettext_noop(
            "manage.py taskqueue show {example}; fix the cause, then "
            "manage.py taskqueue retry --query {error_query}"
        ),
        gettext_noop(
            "A new kind of error: tasks named {subject} fail without an error class. Failed tasks:"
            " {count}. The first, {example}, failed {age} ago."
        ),
        gettext_noop(
            "manage.py taskqueue show {example}; fix the cause, then "
            "manage.py taskqueue workflows retry {workflow}. Further failed workflows: "
            "manage.py taskqueue workflows list --status failed"
        ),
        gettext_noop(
            "manage.py taskqueue show {example}; fix the cause, then "
            "manage.py taskqueue retry --query {error_query}. Tasks of workflows, which this leaves"
            " out: {in_workflows}. Retry them with: "
            "manage.py taskqueue workflows retry {workflow}. Further failed workflows: "
            "manage.py taskqueue workflows list --status failed"
        ),
    ),
    "halted": Text(
        gettext_noop(
            "Halted sequences: {count}. In {total} of them tasks wait behind the task that failed,"
            " such as {subject}."
        ),
        gettext_noop(
            "manage.py taskqueue retry {subject}, or manage.py taskqueue release {subject} to let"
            " the others go on without it."
        ),
        gettext_noop(
            "Halted sequences: {count}. The task that failed is, in one of them, {subject}. No task"
            " waits behind it."
        ),
    ),
    "doctor": Text(
        gettext_noop("The doctor found: {detail}"),
        "{advice}",
        gettext_noop("The doctor found on {host}: {detail}"),
    ),
    "heartbeat_failing": Text(
        gettext_noop(
            "The heartbeat {subject} cannot call its URL, so that nobody outside hears that all is"
            " well: {detail}"
        ),
        gettext_noop(
            "Look whether its URL is right, and whether workers may reach it:"
            " manage.py taskqueue alerts test {subject}."
        ),
    ),
    "long_run": Text(
        gettext_noop(
            "The task {subject} ({detail}) has run for {age}; 95 of 100 such tasks take at most"
            " {usual}."
        ),
        gettext_noop(
            "manage.py taskqueue show {subject}; manage.py taskqueue stop {subject} ends it."
        ),
        gettext_noop(
            "The task {subject} ({detail}) has run for {age}; fewer than 5 runs of it are known."
        ),
    ),
    "schedule_overdue": Text(
        gettext_noop("Schedules are overdue: {count}. The first is {subject}, for {age}."),
        gettext_noop(
            "Start a worker, or read the workers' logs: something keeps them from their duties."
        ),
    ),
    "failing": Text(
        gettext_noop(
            "In the queue {subject}, {count} of {total} attempts failed within the last 15 minutes."
        ),
        gettext_noop(
            'Fix the cause: manage.py taskqueue list "queue:{subject} status:failed,retrying".'
        ),
    ),
    "absent_workers": Text(
        gettext_noop(
            "In the queue {subject}, tasks wait for named workers that are not running or claim"
            " nothing: {count}. The first is {example}, which has waited {age} for {detail}."
        ),
        gettext_noop(
            "Start a worker with --name {detail}, or cancel the tasks. See"
            " manage.py taskqueue why {example}."
        ),
    ),
    "too_few_workers": Text(
        gettext_noop(
            "In the queue {subject}, tasks wait for more workers than are running: {count}. The"
            " first is {example}, which has waited {age}: of {total} workers it still needs"
            " {detail}."
        ),
        gettext_noop(
            "Start more workers for the queue, each with its own name, or cancel the tasks. See"
            " manage.py taskqueue why {example}."
        ),
    ),
    "parked": Text(
        gettext_noop(
            "Tasks are parked because no worker that claimed them knows {subject}: {count}. The"
            " first is {example}, parked for {age}: it fails in {left}."
        ),
        gettext_noop(
            "Start workers whose code has the task, restart workers with old code, or cancel the"
            " tasks. See manage.py taskqueue why {example}."
        ),
        gettext_noop(
            "Tasks are parked because no worker that claimed them knows {subject}: {count}. The"
            " first is {example}, parked for {age}: it fails at its next attempt."
        ),
    ),
    "schedule_trouble": Text(
        gettext_noop("The schedule {subject} cannot be served: {detail}"),
        gettext_noop("Fix what it says: manage.py taskqueue schedules show {subject}."),
    ),
    "schedule_paused_itself": Text(
        gettext_noop("The schedule {subject} paused itself after {count} failures in a row."),
        gettext_noop("Fix their cause, then run manage.py taskqueue schedules resume {subject}."),
    ),
    "lost_worker": Text(
        gettext_noop("The worker {subject} was lost: it sent no heartbeat within its lease."),
        gettext_noop("Check its host: was the process killed, out of memory, or disconnected?"),
    ),
    "worker_trouble": Text(
        gettext_noop("The worker {subject} is in trouble: {detail}"),
        gettext_noop("Fix what it says. Restart the worker unless it recovers by itself."),
    ),
    "wedged": Text(
        gettext_noop(
            "The task {subject} has produced no output for far longer than similar tasks."
        ),
        gettext_noop("manage.py taskqueue show {subject}, then stop {subject}."),
    ),
    "lost_holds": Text(
        gettext_noop(
            "Tasks that lost workers hold until their leases expire: {count}. {subject} is held the"
            " longest."
        ),
        gettext_noop(
            "manage.py taskqueue why {subject}; then stop {subject} "
            "--yes, or retry {subject} --yes."
            " Its code may still be running if the worker's host is only disconnected."
        ),
    ),
}
