"""Serving schedules: an occurrence for every nominal time, and a task for those that run.

Any worker can do this. The worker that has locked a schedule's row does all of it in one
transaction: it writes the occurrences and their tasks, and advances the schedule.
"""
