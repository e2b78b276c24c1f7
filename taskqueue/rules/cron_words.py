"""Cron expressions in plain English, by cron_descriptor."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1024)
def described(expression: str) -> str:
    """Return the expression in words, with a clock of 24 hours; itself where that fails."""
    if _is_beyond_words(expression.lower()):
        return expression
    from cron_descriptor import ExpressionDescriptor, Options  # late: only pages need it

    fields = expression.upper().split()
    second_first = " ".join([*fields[5:], *fields[:5]])
    options = Options(locale_code="en_US", use_24hour_time_format=True)
    try:
        return str(ExpressionDescriptor(second_first, options).get_description())
    except Exception:  # whatever it cannot describe
        return expression


def _is_beyond_words(expression: str) -> bool:
    """Whether cron_descriptor says less or something else than the expression."""
    of_month, _, of_week = expression.split()[2:5]
    nth = "#" in of_week or "l" in of_week
    if nth and ("," in of_week or of_month not in "*?"):
        return True
    return "," in of_month and "l" in of_month
