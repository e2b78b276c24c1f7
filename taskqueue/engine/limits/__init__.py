"""Limits: claiming tasks that are limited, or that only workers with certain tags may run."""
