"""Teardown: parents, volumes, removal in reverse order, cleanup, orphans."""
