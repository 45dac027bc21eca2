"""Sinks: where frames and results are written to. Start at `base.py`."""
