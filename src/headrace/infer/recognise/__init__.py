"""Recognition of a bare ONNX file: its head, its pictures, its config."""
