"""What deploy and teardown share: the context of a run, its lock, its watch and its lifecycle."""
