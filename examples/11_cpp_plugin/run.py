"""Loads the engine that was built, in a process that knows the plugin, and runs it."""

import sys

import numpy as np

from headrace.engine import Plan
from headrace.errors import HeadraceError
from headrace.plugins import get_plugin_registry

if "--without" not in sys.argv:
    get_plugin_registry().load_library("libswish.so")

rng = np.random.default_rng(0)
x = rng.random((2, 3, 32, 32), np.float32)
precision = "int8" if "--int8" in sys.argv else "fp32"
plan = Plan.load(f"swish.onnx_b2_gpu0_{precision}.engine")
try:
    with plan.open_session() as session:
        means = session.run({"image": x})["means"]
except HeadraceError as error:
    sys.exit(f"error: {error}")
mix = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
mixed = np.einsum("oc,nchw->nohw", mix, x)
expected = (mixed / (1 + np.exp(-2 * mixed))).mean(axis=(2, 3))
print(f"largest difference from NumPy: {np.abs(means - expected).max():.0e}")
