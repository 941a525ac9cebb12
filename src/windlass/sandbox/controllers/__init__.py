"""Controllers for workloads, volumes and pods: each watches the store and writes through the API."""
