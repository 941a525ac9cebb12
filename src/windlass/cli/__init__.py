"""Arguments and environment in, output and exit code out; the composition root."""
