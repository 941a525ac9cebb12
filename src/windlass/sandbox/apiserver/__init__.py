"""The sandbox's API server: requests, verbs, the store and garbage collection."""
