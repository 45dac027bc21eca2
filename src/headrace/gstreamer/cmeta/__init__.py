"""Metadata as C applications see it: structures in memory, built where C code asks for them.

Start at `tree.py`.
"""
