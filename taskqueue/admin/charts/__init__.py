"""Charts as SVG, drawn on the server from a `Series`: no script, no style, no look at a task."""

from taskqueue.admin.charts.bars import outcomes_chart, sparkline
from taskqueue.admin.charts.lines import times_chart

__all__ = ["outcomes_chart", "sparkline", "times_chart"]
