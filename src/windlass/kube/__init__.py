"""An API server behind one transport seam: a thin async client, and views that stay right."""
