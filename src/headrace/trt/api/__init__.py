"""Classes of the `tensorrt`-shaped API."""
