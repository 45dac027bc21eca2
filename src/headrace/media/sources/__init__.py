"""Sources: where frames come from. Start at `base.py`."""
