"""One module per command: settings in, output and exit code out."""
