"""A year of cron: three schedulers race through simulated time, are killed, and miss nothing.

    python -m tests.schedules.year --help

The rules, and the oracle that says when each is due, are those of `tests/rules`.

| file | what |
| --- | --- |
| `plans.py` | which schedules, and when they must run |
| `shared.py` | what the processes share: the clock, and what happened |
| `racer.py` | a scheduler in a process of its own, which dies when its fuse has burnt |
| `race.py` | starts, kills and replaces them, until the time is over |
| `checking.py` | whether each nominal time has its one occurrence, and each run its one task |
| `bugs.py` | mistakes that the checker must catch |
"""
