"""What deploy and teardown share: context, lock, watch, lifecycle."""
