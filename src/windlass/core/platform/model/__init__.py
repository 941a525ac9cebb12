"""The platform, its graph and scopes, and the snapshot of a cluster."""
