"""An embedded cluster: a Kubernetes API server on loopback or in the process, with faults on demand and a journal."""
