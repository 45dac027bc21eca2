"""The GPU without a runtime: CUDA driver calls, kernels, tensors, visible devices, MPS.

Start at `cuda.py`.
"""
