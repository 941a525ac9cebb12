"""Requests and responses: HTTP, TLS, retries, rate limit, deadlines."""
