"""Caffe models: a network as text, weights beside it. No caffe needed. Start at `importer.py`."""
