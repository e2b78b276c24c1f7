"""Batches: events are collected, and any worker turns them into tasks."""
