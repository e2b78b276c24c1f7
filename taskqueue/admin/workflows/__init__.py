"""The pages of workflows."""
