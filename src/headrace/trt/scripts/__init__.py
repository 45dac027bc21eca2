"""Scripts written for TensorRT, run unchanged: module aliases and `headrace exec`.

Start at `script.py`.
"""
