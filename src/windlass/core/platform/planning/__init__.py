"""What to do and in which order: plans, schedules, warnings."""
