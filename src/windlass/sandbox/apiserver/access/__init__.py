"""Authentication, authorization, certificates and the kubeconfig."""
