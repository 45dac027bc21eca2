"""Scaling on an NVIDIA GPU: pictures that are there stay there. Imported where one is in use."""
