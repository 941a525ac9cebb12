"""The platform half: what to deploy, check and tear down, and when."""
