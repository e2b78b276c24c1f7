"""Permissions and roles. Each verb names the permissions that it needs (`engine.control.verb`)."""
