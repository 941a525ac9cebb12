"""Every decision, pure: no I/O, no clock, no waiting, no logging."""
