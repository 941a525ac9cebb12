"""Argo CD: its Applications read, watched, written, synced and removed."""
