"""Limits: the claim of tasks that are limited, or for which only some workers have the tags."""
