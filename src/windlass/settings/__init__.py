"""Options, variables, mounted files and the embedded platform in; typed settings, or all problems, out."""
