"""Logs, metrics and their transports, without a secret in any of them."""
