"""Shapes and small values of tensors, worked out node by node as a network grows or is edited."""
