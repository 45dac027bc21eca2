"""The INT8 scales of a model, found from images. Start at `scales.py`."""
