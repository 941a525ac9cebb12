"""A platform file drafted from a live Argo CD."""
