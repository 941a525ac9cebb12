"""Argo CD as recorded: repositories, comparisons, health, operations, and the controller that ties them together."""
