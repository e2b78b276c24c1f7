"""What a project declares: definitions, their options and schedules. Loads no model."""
