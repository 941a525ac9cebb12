"""Addresses inside the node's network namespace; none of them exists outside it."""

NODE = "198.51.100.2"
NODE_WITH_PREFIX = f"{NODE}/24"
PODS = "10.244.0.0/16"
SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
API_PORT = 6443
REGISTRY_PORT = 5000
GIT_PORT = 8090
COREDNS_READY_PORT = 8181
PROXY_HEALTH_PORT = 10256
