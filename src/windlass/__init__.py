"""Raises, checks and lowers a whole Kubernetes platform, and does guarded day-2 work on it."""

__version__ = "0.1.0.dev0"
