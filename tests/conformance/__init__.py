"""Django's own tests of task backends, run against ours: `python -m tests.conformance`."""
