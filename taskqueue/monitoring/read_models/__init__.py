"""One description of each noun that people see, for the admin, the CLI, REST and exports alike.

A read model is made from rows in one place, with values redacted that its viewer may not see.
"""
