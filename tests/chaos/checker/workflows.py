"""Invariant 12: steps run once, after all that they depend on, and ends are counted once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from taskqueue.core.workflow_states import (
    FINAL_STEPS,
    FINAL_WORKFLOWS,
    After,
    OnFailure,
    StepKind,
    StepStatus,
    WorkflowStatus,
)
from taskqueue.declarations.workflows.graph import Edge
from tests.chaos.checker.evidence import REOPENING, Evidence, Violation, is_finished
from tests.chaos.checker.graphs import Graphs
from tests.chaos.history import Change
from tests.chaos.workflow_rows import EdgeRow, StepRow, WorkflowRow
from tests.workflows.model import fate

RAN = {StepStatus.SUCCEEDED, StepStatus.FAILED}


def workflows_follow_their_graphs(evidence: Evidence) -> Iterator[Violation]:
    """12: nothing of a workflow runs early, twice or never, and its counts hold."""
    graphs = Graphs(evidence)
    yield from _places_sent_twice(graphs)
    yield from _early_attempts(graphs)
    if evidence.history.repairs:
        details = f"{evidence.history.repairs} steps"
        yield Violation(12, "Counts had to be repaired.", "", details)
    if evidence.history.is_over:
        yield from _unended(graphs)
        yield from _wrong_counts(graphs)
        yield from _wrong_fates(graphs)


def _places_sent_twice(graphs: Graphs) -> Iterator[Violation]:
    sent = Counter((member.step_id, member.place) for member in graphs.history.members)
    for row in graphs.history.workflows:
        if row.parent_step_id is not None and row.parent_place is not None:
            sent[row.parent_step_id, row.parent_place] += 1
    for (step_id, place), number in sent.items():
        if number > 1:
            sentence = "A place has several tasks or workflows."
            yield graphs.violation(step_id, sentence, f"{place}: {number}")


def _early_attempts(graphs: Graphs) -> Iterator[Violation]:
    """By the order of the changes, which is that of locks: an end is there before a release."""
    changes = graphs.evidence.task_changes
    for step_id, members in graphs.members.items():
        needed = graphs.needed(step_id)
        for member in members if needed else ():
            own = changes.get(member.task_id, [])
            leases = graphs.evidence.lease_changes.get(member.task_id, [])
            claims = [change for change in leases if not change.before]
            early = (
                id
                for id in needed
                for claim in claims
                if _is_early(own, claim.number, changes.get(id, []))
                and not _was_sent_by_retry(graphs, step_id, own, claim, changes.get(id, []))
            )
            if (task_id := next(early, None)) is not None:
                sentence = "A step ran before what it depends on had ended."
                yield graphs.violation(step_id, sentence, f"before {task_id}", member.task_id)


def _is_early(own: list[Change], claim: int, needed: list[Change]) -> bool:
    """Whether a needed task had not ended at a claim, nor when the one that was claimed was sent.

    It may have been retried by hand since then. Or, where both were, by a retry that made it anew.
    """
    sent = [each.number for each in _sent(own, claim)]
    if any(_had_ended(needed, number) for number in (claim, *sent[-1:])):
        return False
    was_retried = any(each.number > claim and is_finished(each.before) for each in own)
    return not (was_retried and needed and needed[0].number > claim)


def _was_sent_by_retry(
    graphs: Graphs, step_id: int, own: list[Change], claim: Change, needed: list[Change]
) -> bool:
    """Whether a needed task was made after the one that was claimed was sent, by a retry.

    Its map had ended without it, such as one that was cancelled before it sent its members. What
    runs after any end of that map ran, and stays, even if it was sent and not claimed yet. A
    workflow also runs again with those that it is a step of, and as a step is resolved.
    """
    sent = _sent(own, claim.number)[-1:]
    if not (sent and needed) or needed[0].before or needed[0].number < sent[0].number:
        return False
    workflow_ids = set(graphs.evidence.above(graphs.steps[step_id].workflow_id))
    clock, slack = graphs.evidence.bounds.clock, graphs.evidence.bounds.slack
    return any(
        audit.verb in REOPENING
        and audit.subject in workflow_ids
        and sent[0].at - clock <= audit.at <= needed[0].at + slack
        for audit in graphs.history.audits
    )


def _sent(own: list[Change], before: int) -> list[Change]:
    """The changes by which a task was made or sent, before that one."""
    return [each for each in own if each.before in ("", "blocked") and each.number < before]


def _had_ended(changes: list[Change], number: int) -> bool:
    before = [change.after for change in changes if change.number < number and change.after]
    return bool(before) and is_finished(before[-1])


def _unended(graphs: Graphs) -> Iterator[Violation]:
    for row in graphs.history.workflows:
        if row.status not in FINAL_WORKFLOWS:
            yield Violation(12, "A workflow did not end.", "", str(row))
        if row.trouble:
            yield Violation(12, "A workflow is in trouble.", "", str(row))
        open_steps = [s for s in graphs.steps_of.get(row.id, []) if s.status not in FINAL_STEPS]
        if len(open_steps) != row.open_steps:
            details = f"{len(open_steps)} steps are open: {row}"
            yield Violation(12, "A workflow miscounts its open steps.", "", details)
        yield from _wrong_totals(graphs, row)
    for note in graphs.history.notes:
        yield graphs.violation(note.step_id, "An end was not counted.", str(note))


def _wrong_totals(graphs: Graphs, row: WorkflowRow) -> Iterator[Violation]:
    steps = graphs.steps_of.get(row.id, [])
    members = sum(step.members or 0 for step in steps)
    # With children, it counts their members too, as far as they were known; of a map that did not
    # succeed, those too that were kept from being sent.
    has_more = any(step.id in graphs.children_of or _may_be_cut(step) for step in steps)
    is_right = row.members == members or (has_more and (row.members or 0) > members)
    if row.total_steps is not None and not (row.total_steps == len(steps) and is_right):
        details = f"{len(steps)} steps and {members} members: {row}"
        yield Violation(12, "A workflow miscounts its steps or members.", "", details)
    failed = [step for step in steps if step.status == StepStatus.FAILED]
    decisive = [step.name for step in failed if step.on_failure == OnFailure.FAIL]
    if row.status == WorkflowStatus.SUCCEEDED and decisive:
        details = f"{decisive[:5]} failed: {row}"
        yield Violation(12, "A workflow succeeded though a step failed.", "", details)


def _may_be_cut(step: StepRow) -> bool:
    return step.kind == StepKind.MAP and step.status in (StepStatus.FAILED, StepStatus.CANCELLED)


def _wrong_counts(graphs: Graphs) -> Iterator[Violation]:
    for step in graphs.history.steps:
        if step.kind not in (StepKind.TASK, StepKind.MAP) or step.status not in FINAL_STEPS:
            continue
        ended = [member for member in graphs.members.get(step.id, []) if is_finished(member.status)]
        children = graphs.children_of.get(step.id, [])
        statuses = [member.status for member in ended]
        statuses += [str(child.status) for child in children if child.status in FINAL_WORKFLOWS]
        failures = sum(status != "succeeded" for status in statuses)
        failures += sum(fan.status != "succeeded" for fan in graphs.fans_of.get(step.id, []))
        if (step.ended, step.failures) != (len(statuses), failures):
            details = f"{len(statuses)} members have ended, {failures} of them badly: {step}"
            yield graphs.violation(step.id, "A step miscounts its members.", details)
        if step.status == StepStatus.SUCCEEDED and step.ended != step.members:
            yield graphs.violation(step.id, "A step succeeded without all members.", str(step))


def _wrong_fates(graphs: Graphs) -> Iterator[Violation]:
    """Compare how steps ended with what the rules say, where nobody stopped the workflow."""
    stopped = {row.id for row in graphs.history.workflows if row.was_stopped}
    for step in graphs.history.steps:
        if step.workflow_id in stopped or step.status not in FINAL_STEPS:
            continue
        edges = graphs.edges_to.get(step.id, [])
        ends = {str(edge.upstream_id): _end_of(graphs, edge) for edge in edges}
        forgiven = {
            str(edge.upstream_id)
            for edge in edges
            if graphs.steps[edge.upstream_id].on_failure == OnFailure.CONTINUE
        }
        expected = fate([_named(edge) for edge in edges], ends, forgiven)
        allowed = {expected}
        if expected is StepStatus.RUNNING:
            allowed = RAN | ({StepStatus.SKIPPED} if step.has_condition else set())
        if graphs.evidence.reopened[step.workflow_id]:
            allowed |= RAN  # What ran before a retry of others stays.
            above = graphs.steps.get(step.parent_step_id or 0)
            if above is not None and above.status == StepStatus.SUCCEEDED:
                allowed.add(StepStatus.CANCELLED)  # Its step has succeeded without it.
        if step.status not in allowed:
            details = f"not {', '.join(sorted(allowed))}: {step} after {ends}"
            yield graphs.violation(step.id, "A step ended against the rules.", details)


def _end_of(graphs: Graphs, edge: EdgeRow) -> StepStatus:
    return StepStatus(graphs.steps[edge.upstream_id].status)


def _named(edge: EdgeRow) -> Edge:
    when = After(edge.when)
    return Edge(upstream=str(edge.upstream_id), downstream=str(edge.downstream_id), when=when)
