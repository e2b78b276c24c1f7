"""The doctor: what is wrong with a database, its server and its workers, and what to do."""

from taskqueue.monitoring.doctor.examination import examine
from taskqueue.monitoring.doctor.finding import Finding, Severity, visible_to, worst

__all__ = ["Finding", "Severity", "examine", "visible_to", "worst"]
