"""Deploys, checks and removes a Kubernetes platform of Argo CD Applications in dependency order."""

__version__ = "0.1.0.dev0"
