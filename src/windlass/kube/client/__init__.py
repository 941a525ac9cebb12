"""The verbs of an API server, typed and untyped objects, watches and reflectors."""
