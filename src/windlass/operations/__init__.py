"""The order of effects: observe, decide, act, report."""
