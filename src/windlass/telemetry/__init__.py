"""What a run tells the outside: log lines, metrics and their transports, without a secret in any of them."""
