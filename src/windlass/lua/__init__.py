"""Lua programs that others wrote, run where they can do no harm: in a process of their own, with nothing in reach."""
