"""Loads the engine that was built, in a process that knows the plugin, and runs it."""

import sys

import numpy as np

from headrace.engine import Plan
from headrace.errors import HeadraceError
from headrace.plugins import get_plugin_registry

if "--without" not in sys.argv:
    get_plugin_registry().load_library("libswish.so")

x = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)
plan = Plan.load("swish.onnx_b2_gpu0_fp32.engine")
try:
    with plan.open_session() as session:
        means = session.run({"image": x})["means"]
except HeadraceError as error:
    sys.exit(f"error: {error}")
expected = (x / (1 + np.exp(-2 * x))).mean(axis=(2, 3))
print(f"largest difference from NumPy: {np.abs(means - expected).max():.0e}")
