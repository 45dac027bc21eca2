"""Recognition of a bare ONNX file: its head, its images, its config. Start at `recognise.py`."""
