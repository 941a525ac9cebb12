"""Applications, their graph, and every decision about raising, checking and lowering them."""
