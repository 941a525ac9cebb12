"""Kubeconfigs, credentials, exec plugins, proxies."""
