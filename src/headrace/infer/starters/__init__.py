"""Files to start with: those that `headrace init` writes for a bare model.

Start at `writing.py`.
"""
