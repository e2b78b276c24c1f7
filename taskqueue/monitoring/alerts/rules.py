"""Parts of a rule: its numbers, the names that it matches, and the texts of its notices."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from taskqueue.core.alerts import KINDS, AlertKind, AlertScope, Judged
from taskqueue.models import AlertRule
from taskqueue.monitoring.notice import Notice


def threshold_of(rule: AlertRule) -> float:
    """Return the number with which the rule compares."""
    known = KINDS[AlertKind(rule.kind)].threshold if rule.threshold is None else rule.threshold
    return known or 0.0


def window_of(rule: AlertRule) -> int:
    """Return the seconds that the rule looks back."""
    known = rule.window_seconds
    return (KINDS[AlertKind(rule.kind)].window or 0) if known is None else known


def fits(rule: AlertRule, scope: AlertScope, name: str) -> bool:
    """Return whether the rule applies to that name; a rule of another scope applies to all."""
    if rule.scope != scope or not rule.pattern:
        return True
    # A name may contain characters that have a meaning in a pattern.
    return name == rule.pattern or fnmatchcase(name, rule.pattern)


def judged_by(notice: Notice, **more: Any) -> Judged:
    """Return a judgement with the text of a notice."""
    example = {"example": notice.example} if notice.example else {}
    return Judged(
        subject=notice.subject,
        summary=notice.sentence,
        words=notice.words,
        remedy=notice.remedy,
        **{**example, **more},
    )
