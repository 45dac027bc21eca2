"""Formats of model files: names by content, and the way to ONNX. Start at `foreign.py`."""
