"""Argo CD as an outside system: its objects, parsed into the values that the core uses."""
