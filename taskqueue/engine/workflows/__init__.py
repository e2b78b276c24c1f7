"""Workflows as rows: insert graphs, count the ends of tasks, and advance the steps that follow."""
