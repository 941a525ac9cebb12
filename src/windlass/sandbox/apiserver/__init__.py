"""The API server: requests, verbs, the store."""
