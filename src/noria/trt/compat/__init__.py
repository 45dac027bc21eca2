"""Scripts written for TensorRT, run unchanged: module aliases and `noria exec`."""
