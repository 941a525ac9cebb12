"""The product and a sandbox in one process on virtual time: a run is a function of its seed."""
