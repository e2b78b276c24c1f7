"""Read models: one description of each noun, for the admin, the CLI, REST and exports.

A read model is made from rows in one place; values that its viewer may not see are redacted.
"""
