"""Sinks: where frames and results are written to."""
