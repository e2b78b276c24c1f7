"""taskqueue measured against the raw database: `python -m benchmarks --help`."""
