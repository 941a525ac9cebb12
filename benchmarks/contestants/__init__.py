"""A module a client: `python -m benchmarks.contestants.NAME list|watch|apply PORT` prints seconds and memory."""
