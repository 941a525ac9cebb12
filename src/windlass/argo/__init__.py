"""Argo CD as an outside system: its objects read into the core's words."""
