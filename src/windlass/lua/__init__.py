"""Lua scripts from clusters and mounts, run in a separate process that has access to nothing."""
