"""Darknet models: a network as .cfg text, .weights beside it. No darknet needed.

Start at `importer.py`.
"""
