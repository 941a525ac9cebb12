"""Teardown: parents, volumes, removal in reverse order, cleanup and the orphan report."""
