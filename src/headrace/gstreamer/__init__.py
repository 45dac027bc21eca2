"""Applications of GStreamer: elements under the original's names, `pyds`, `pyservicemaker`."""
