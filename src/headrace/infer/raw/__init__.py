"""Tensors outside of an engine: written to files, read back, or computed by another program.

Start at `files.py`.
"""
