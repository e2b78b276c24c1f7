"""Declarations of a project: definitions, their options and schedules. Loads no model."""
