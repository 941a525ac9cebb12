"""The platform, its graph and scopes, and what one look at the cluster showed."""
