"""Serving schedules: an occurrence for every nominal time, and a task for those that run.

Any worker may do it. Who has locked a schedule's row does all of it in one transaction: the
occurrences, their tasks, the schedule's advance.
"""
