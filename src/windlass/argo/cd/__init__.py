"""Applications: parse, watch, write, sync and remove them."""
