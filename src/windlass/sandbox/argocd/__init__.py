"""Argo CD's controllers as recorded: repositories, comparison, health, sync operations, ApplicationSets."""
