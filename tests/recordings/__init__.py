"""What real controllers do to the status of objects, as recorded: the sandbox's actors are written from it."""
