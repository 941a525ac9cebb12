"""Arguments and environment in, views and exit code out; the only composition root."""
