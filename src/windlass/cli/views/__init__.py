"""What a terminal shows: the live view, graphs, settings, rehearsals."""
