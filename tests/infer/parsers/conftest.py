"""One way to call a built-in parser by its name, for all head tests."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.infer.parsers import WELL_KNOWN
from headrace.meta import DetectionParams, Layer, NetworkInfo


@pytest.fixture(scope="session")
def parse():
    """parse(name, outputs, thresholds, size): outputs is a dict, or a list (named o0, o1, ...)."""

    def run(name, outputs, thresholds=(0.25,), size=(100, 80), classes=None):
        if not isinstance(outputs, dict):
            outputs = {f"o{i}": data for i, data in enumerate(outputs)}
        layers = {n: Layer(n, np.asarray(data)) for n, data in outputs.items()}
        thresholds = np.asarray(thresholds, np.float32)
        params = DetectionParams(len(thresholds) if classes is None else classes, thresholds)
        return WELL_KNOWN[name](layers, NetworkInfo(*size, 3), params)

    return run
