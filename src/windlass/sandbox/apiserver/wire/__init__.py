"""YAML and protobuf bodies, and the Status of a refused request."""
