"""The layers of a network by family: their settings, and their maths as ONNX nodes.

Start at `base.py`.
"""
