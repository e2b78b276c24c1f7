"""Describing rules and policies in the language of the page; in English the rule does it itself."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.utils.dates import MONTHS, WEEKDAYS
from django.utils.translation import get_language, ngettext, ngettext_lazy, pgettext_lazy
from django.utils.translation import gettext as _

from taskqueue.engine.schedules.reading import rule_of, rule_text
from taskqueue.models import Schedule
from taskqueue.rules import AfterEnd, Cron, DailyWindow, Every, Once, Rule, wording
from taskqueue.rules.values import DAYS, FULL_DAYS

# Our languages, with cron_descriptor's names for them; it has more, for which we have no catalogue.
CRON_LOCALES = {"zh-hans": "zh_CN"}
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
# Names of days and months, which cron_descriptor gives in the process's language.
NAMES = {name.capitalize(): WEEKDAYS[day] for day, name in enumerate(FULL_DAYS)} | {
    name: MONTHS[month] for month, name in enumerate(MONTH_NAMES, start=1)
}
ENGLISH_NAMES = re.compile(rf"\b({'|'.join(NAMES)})\b")
# A space between two Chinese characters, as cron_descriptor leaves it.
LOOSE = re.compile(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])")


def rule_words(schedule: Schedule) -> str:
    """Return the row's rule in words, or why it cannot be read."""
    text, rule = rule_text(schedule), rule_of(schedule)
    language = get_language() or "en"
    return text if rule is None or language not in CRON_LOCALES else said(rule, language)


def said(rule: Rule, language: str) -> str:
    """Return the rule with its bounds, in a language of the catalogue."""
    words = _said(rule, language)
    limits = {_("%(rule)s, from %(moment)s"): rule.start, _("%(rule)s, until %(moment)s"): rule.end}
    for limited, moment in limits.items():
        if moment is not None:
            words = limited % {"rule": words, "moment": wording.moment(moment)}
    return words


def _said(rule: Rule, language: str) -> str:
    match rule:
        case Every():
            return _("Every %(duration)s") % {"duration": _duration(rule.interval)}
        case AfterEnd():
            return _("%(duration)s after the last end") % {"duration": _duration(rule.interval)}
        case Once():
            return _("Once, at %(moment)s") % {"moment": wording.moment(rule.at)}
        case DailyWindow():
            return _window(rule)
        case Cron():
            words = wording.described(rule.expression, CRON_LOCALES[language])
            named = ENGLISH_NAMES.sub(lambda found: str(NAMES[found[1]]), words)
            set_close = LOOSE.sub("", named.replace(", ", "\uff0c"))
            return _("%(times)s (%(zone)s)") % {"times": set_close, "zone": rule.tz}
    return rule.text


def _window(rule: DailyWindow) -> str:
    words = _("Every %(duration)s from %(first)s to %(last)s, %(days)s (%(zone)s)")
    if rule.last < rule.first:
        words = _("Every %(duration)s from %(first)s to %(last)s the next day, %(days)s (%(zone)s)")
    return words % {
        "duration": _duration(rule.every), "first": wording.clock(rule.first),
        "last": wording.clock(rule.last), "days": _days(rule.days), "zone": rule.tz,
    }  # fmt: skip


def _days(names: tuple[str, ...]) -> str:
    if len(names) == len(DAYS):
        return _("every day")
    return _(", ").join(str(WEEKDAYS[DAYS.index(name)]) for name in names)


LENGTHS = {
    86_400: ngettext_lazy("%(count)s day", "%(count)s days", "count"),
    3_600: ngettext_lazy("%(count)s hour", "%(count)s hours", "count"),
    60: ngettext_lazy("%(count)s minute", "%(count)s minutes", "count"),
}


def _duration(span: timedelta) -> str:
    parts, rest = [], span.total_seconds()
    for length, words in LENGTHS.items():
        count, rest = divmod(rest, length)
        if count:
            parts.append(words % {"count": int(count)})
    if rest or not parts:
        shown = f"{rest:.6f}".rstrip("0").rstrip(".")
        seconds = ngettext("%(count)s second", "%(count)s seconds", 1 if rest == 1 else 2)
        parts.append(seconds % {"count": shown})
    return " ".join(parts)


# By the value of `Missed`.
MISSED_WORDS: dict[str, Any] = {
    "skip": pgettext_lazy("missed runs", "skip: run none of them"),
    "latest": pgettext_lazy("missed runs", "latest: run only the last one"),
    "all": pgettext_lazy("missed runs", "all: run every one"),
    "window": pgettext_lazy("missed runs", "window: run those within the missed window"),
}
# By the value of `Overlap`.
OVERLAP_WORDS: dict[str, Any] = {
    "skip": pgettext_lazy("overlapping runs", "skip: leave out the new run"),
    "queue_one": pgettext_lazy("overlapping runs", "queue_one: let one run wait"),
    "queue_all": pgettext_lazy("overlapping runs", "queue_all: run one after another"),
    "cancel": pgettext_lazy("overlapping runs", "cancel: cancel the earlier run"),
    "allow": pgettext_lazy("overlapping runs", "allow: run both at once"),
}
