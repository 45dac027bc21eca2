"""The user's own low-level tracker library: `ll-lib-file`, the functions NvMOT_*.

Start at `source.py`.
"""
