"""An embedded Kubernetes cluster, on loopback or in the process, with faults on demand and a request journal."""
