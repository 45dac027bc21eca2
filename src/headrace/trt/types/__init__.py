"""Enumerations, values, tensors and reports of TensorRT's API, below its layers.

Start at `tensor.py`.
"""
