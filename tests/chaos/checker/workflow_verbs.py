"""Invariant 12, for people's verbs on workflows: cancel, pause and retry."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from taskqueue.core.workflow_states import StepKind, WorkflowStatus
from tests.chaos.checker.evidence import Evidence, Violation
from tests.chaos.checker.graphs import Graphs
from tests.chaos.history import AuditRow, Change
from tests.chaos.workflow_rows import StepRow, VerbRow

RETRIES = ("retry", "retry_from", "retry_task", "resolve")
FROM = "from step "
"""How the audit of such a retry tells from which step."""
LONGEST_RETRY = 30.0
"""Seconds that the transaction of a retry may take."""


def verbs_are_obeyed(evidence: Evidence) -> Iterator[Violation]:
    """12: nothing starts after a cancel or in a pause, and retries rerun no successful step."""
    graphs = Graphs(evidence)
    for verb in evidence.history.verbs:
        if verb.name == "cancel" and verb.answered_at is not None:
            yield from _claimed_after_cancel(graphs, verb)
        if verb.name == "pause" and verb.answered_at is not None:
            yield from _released_in_pause(graphs, verb)
    yield from _reopened_successes(graphs)
    for step in evidence.history.steps:
        if step.kind in (StepKind.TASK, StepKind.MAP) and step.compensates_id is None:
            yield from _rerun(graphs, step)


def _until(graphs: Graphs, verb: VerbRow, *others: str) -> float:
    """When somebody next asked for one of these, whether it was answered or not."""
    return min(
        (
            each.asked_at
            for each in graphs.history.verbs
            if each.workflow_id == verb.workflow_id
            and each.name in others
            and each.asked_at > verb.asked_at
        ),
        default=float("inf"),
    )


def _claimed_after_cancel(graphs: Graphs, verb: VerbRow) -> Iterator[Violation]:
    assert verb.answered_at is not None
    since, until = verb.answered_at + graphs.evidence.bounds.clock, _until(graphs, verb, *RETRIES)
    for member in graphs.members_of(verb.workflow_id):
        for lease in graphs.evidence.leases.get(member.task_id, []):
            if since < lease.claimed_at < until:
                details = f"{lease.claimed_at - since:.3f} s after {verb}"
                sentence = "A task was claimed after its workflow was cancelled."
                yield graphs.violation(member.step_id, sentence, details, member.task_id)


def _released_in_pause(graphs: Graphs, verb: VerbRow) -> Iterator[Violation]:
    assert verb.answered_at is not None
    since = verb.answered_at + graphs.evidence.bounds.clock
    until = _until(graphs, verb, "resume", "cancel", *RETRIES)
    for member in graphs.members_of(verb.workflow_id):
        for change in graphs.evidence.task_changes.get(member.task_id, []):
            is_sent = change.before in ("", "blocked") and change.after in ("ready", "scheduled")
            if is_sent and since < change.at < until:
                details = f"{change.at - since:.3f} s after {verb}"
                sentence = "A task was released while its workflow was paused."
                yield graphs.violation(member.step_id, sentence, details, member.task_id)


def _reopened_successes(graphs: Graphs) -> Iterator[Violation]:
    """Only a retry from a step on, or of a task whose failure was forgiven, leaves a success."""
    for row in graphs.history.workflows:
        for change in graphs.evidence.workflow_changes.get(row.id, []):
            if change.before != WorkflowStatus.SUCCEEDED or row.parent_step_id is not None:
                continue
            if not any(audit.detail for audit in _retries(graphs, row.id, change)):
                sentence = "A workflow left its success by a retry of what had failed."
                yield Violation(12, sentence, "", f"{change}: {row}")


def _rerun(graphs: Graphs, step: StepRow) -> Iterator[Violation]:
    """A step of which all members had succeeded runs again only from a step on, or undone."""
    members = graphs.members.get(step.id, [])
    changes = {
        member.task_id: graphs.evidence.task_changes.get(member.task_id, []) for member in members
    }
    for task_id, own in changes.items():
        for change in own:
            if change.before != "succeeded" or not change.after:
                continue
            ended = [_had_succeeded(each, change) for each in changes.values()]
            if ended.count(True) == step.members and not _is_permitted(graphs, step, change):
                sentence = "A retry ran a step again that had succeeded."
                yield graphs.violation(step.id, sentence, str(change), task_id)


def _had_succeeded(changes: list[Change], reopened: Change) -> bool:
    """Whether the task had succeeded before that transaction, which reopens many tasks at once."""
    before = [
        each
        for each in changes
        if each.number < reopened.number and (each.before, each.after) != ("succeeded", "blocked")
    ]
    return bool(before) and before[-1].after == "succeeded"


def _is_permitted(graphs: Graphs, step: StepRow, change: Change) -> bool:
    behind = {graphs.steps[id].name for id in graphs.behind(step.id)}
    audits = _retries(graphs, step.workflow_id, change)
    if any(audit.detail.removeprefix(FROM) in behind for audit in audits):
        return True
    ends = graphs.evidence.workflow_changes.get(step.workflow_id, [])
    return any(
        each.after == WorkflowStatus.COMPENSATING and each.number < change.number for each in ends
    )


def _retries(graphs: Graphs, workflow_id: str, change: Change) -> Iterator[AuditRow]:
    """The retry that may have made a change: the first that is audited at it or after it.

    It is audited at the end of its transaction, which holds the workflow's lock: none comes
    between. On a busy machine that takes a while.
    """
    clock = graphs.evidence.bounds.clock
    audits = (
        audit
        for audit in graphs.history.audits
        if audit.verb == "retry" and audit.subject == workflow_id and audit.at >= change.at - clock
    )
    first = min(audits, key=attrgetter("at"), default=None)
    if first is not None and first.at <= change.at + LONGEST_RETRY:
        yield first
