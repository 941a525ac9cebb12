"""Kubeconfigs, credentials and exec plugins."""
