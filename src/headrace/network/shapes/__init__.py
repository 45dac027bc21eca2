"""Types, shapes and small values inside a graph, before it runs.

`node_shapes` works out one node from its inputs and follows the elements of small tensors, so that
a reshape to computed extents is known: networks by code and shapes of an engine's outputs use it.
`graph_shapes` asks ONNX's own inference about a whole model, which keeps the names of free axes and
goes through functions and bodies: plugins of parsed models use it. Both give `TensorType`s.

Start at `model_shapes.py`.
"""
