"""Tests of the benchmarks: their counterparts must not flatter."""
