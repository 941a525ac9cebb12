"""Authentication, authorization, certificates and the kubeconfig of the sandbox."""
