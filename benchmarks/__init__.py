"""Benchmarks that compare taskqueue with the raw database: `python -m benchmarks --help`."""
