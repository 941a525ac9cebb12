"""The report of a run: verdict, findings, recommendations, output formats."""
