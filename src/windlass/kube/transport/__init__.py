"""Requests and responses: HTTP, TLS, proxies, retries and deadlines."""
