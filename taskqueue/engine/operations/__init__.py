"""One verb done to many tasks in the background: asked for here, served by any worker."""

from taskqueue.engine.operations.asking import (
    cancel_operation,
    start_operation,
    start_or_find,
)
from taskqueue.engine.operations.counting import Estimate, estimate
from taskqueue.engine.operations.reading import get_operation, operations
from taskqueue.engine.operations.stored import held_count, which_of

__all__ = [
    "Estimate",
    "cancel_operation",
    "estimate",
    "get_operation",
    "held_count",
    "operations",
    "start_operation",
    "start_or_find",
    "which_of",
]
