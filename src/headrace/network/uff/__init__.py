"""UFF models, as TensorRT's converter made them from TensorFlow graphs. No tensorflow needed.

Start at `importer.py`.
"""
