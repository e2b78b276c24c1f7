"""How long a task is kept that is ended by hand."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q

_TIME = models.DateTimeField()


def prune_after(now: datetime, kept: timedelta | None) -> models.Case:
    """When a task that finishes now may be pruned: never before it releases its key."""
    moment, nothing = models.Value(now, _TIME), models.Value(None, _TIME)
    own = models.ExpressionWrapper(moment + F("retention"), output_field=_TIME)
    held = Q(holds_unique_key=True)
    ends = [
        models.When(held & Q(unique_for="kept"), then=nothing),
        models.When(held & Q(retention__isnull=False, unique_until__gt=own), then="unique_until"),
        models.When(retention__isnull=False, then=own),
    ]
    if kept is None:
        return models.Case(*ends, default=nothing)
    end = now + kept
    ends.append(models.When(held & Q(unique_until__gt=end), then="unique_until"))
    return models.Case(*ends, default=models.Value(end, _TIME))
