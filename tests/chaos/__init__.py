"""The fault run: real workers under load, one fault after the other, and a checker of the history.

    python -m tests.chaos --list

`faults/` holds one class a fault, `stage.py` what a fault may do, `client.py` who enqueues,
`history.py` and `checker.py` what is asked of the outcome. A run leaves in its folder:

| file | what |
| --- | --- |
| `client` | the client's log: see `clients.py` |
| `journal` | what bodies appended: see `tests.guarantees.history.Journal` |
| `*.log` | the workers' output |
"""
