"""Run a plan: each step once its dependencies have succeeded."""
