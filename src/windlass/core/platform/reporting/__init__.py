"""The report of a run: verdict, findings, recommendations, and its output formats."""
