"""Auto-tuning: measure the tactics of a model and keep the fastest. Start at `tune.py`."""
