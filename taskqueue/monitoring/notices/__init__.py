"""The notices: what is wrong now, since when, and what to do about it."""

from taskqueue.monitoring.notice import ERROR, WARNING, Notice
from taskqueue.monitoring.notices.judging import notices, visible_to
from taskqueue.monitoring.notices.situation import Situation

__all__ = ["ERROR", "WARNING", "Notice", "Situation", "notices", "visible_to"]
