"""Classes of the `tensorrt`-shaped API. Start at `builder.py`."""
