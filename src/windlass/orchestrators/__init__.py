"""Runners of a plan."""
