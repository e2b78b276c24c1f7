"""Batches: events are collected, and any worker makes tasks of them."""
