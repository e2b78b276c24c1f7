"""Serve schedules: write an occurrence for every nominal time, and a task if it runs.

Any worker may do it. The worker that has locked the row of a schedule writes everything in one
transaction: the occurrences, their tasks, and the schedule's next time.
"""
