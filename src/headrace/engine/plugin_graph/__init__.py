"""Graphs with plugin nodes: operators of the runtime, or pieces between plugins.

Start at `opening.py`.
"""
