"""Whatever the numbers and the lengths of the axes: detections or a ParserError, nothing else."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from headrace.infer.parsers import WELL_KNOWN
from headrace.infer.parsers.catalogue import HEADS
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.profiles import examples, thinned

VALUES = [0.0, 0.3, 0.9, 1.0, -1.0, 5.0, 90.0, 1e30, -1e30, np.nan, np.inf, -np.inf]


def length(term, lengths):
    if term.isdecimal():
        return int(term)
    times, plus, letter = re.fullmatch(r"(?:(\d+)\*)?\(?(?:(\d+)\+)?([A-Z])\)?", term).groups()
    return int(times or 1) * (int(plus or 0) + lengths.setdefault(letter, len(lengths)))


@pytest.mark.parametrize("head", thinned(HEADS, 3), ids=lambda h: h.name)
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_detections_or_a_parser_error(head, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    layout = data.draw(st.sampled_from(head.layouts))
    axes = {axis for out in layout.outs for axis in re.findall("[A-Z]", out.dims)}
    lengths = {axis: data.draw(st.sampled_from([0, 1, 2, 3, 7, 21])) for axis in sorted(axes)}
    layers = {}
    for i, out in enumerate(layout.outs):
        shape = [length(term, lengths) for term in out.dims.split()]
        name = out.names[0] if out.names else f"o{i}"
        kind = data.draw(st.sampled_from([np.float32, np.float16] + [np.int32] * out.integers))
        with np.errstate(all="ignore"):
            layers[name] = Layer(name, rng.choice(VALUES, shape).astype(kind))
    classes = data.draw(st.integers(0, 4))
    params = DetectionParams(classes, rng.choice([0, 0.25, 1], classes).astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = WELL_KNOWN[head.name](layers, NetworkInfo(32, 32, 3), params)
        except ParserError:
            return
    assert np.isfinite(found.boxes).all() or "Resnet" in head.name
    assert (found.class_ids >= 0).all()
