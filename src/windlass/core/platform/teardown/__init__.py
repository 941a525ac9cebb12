"""What a teardown removes, keeps and leaves behind."""
