"""Small programs that behave as a cluster's controllers do: each watches the store and writes through the API."""
