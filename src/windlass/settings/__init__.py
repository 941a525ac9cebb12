"""Values in: options, variables, mounted files and the embedded platform become settings, or all their mistakes."""
