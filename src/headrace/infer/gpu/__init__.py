"""Scaling on an NVIDIA GPU: images that are there stay there. Imported where one is in use.

Start at `scaler.py`.
"""
