"""Log lines and metrics, formatted, redacted and exported; independent of what is logged or measured."""
