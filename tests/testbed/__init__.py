"""A real Kubernetes on this machine for tests: built from pinned Go modules, run in namespaces of its own."""
