"""Read models: one description of each noun, for the admin, the CLI, REST and exports.

A read model is made from rows in one place, with values redacted that its viewer may not see.
"""
