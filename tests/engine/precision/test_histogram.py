"""Histograms do not depend on order or pieces; clips agree with slow versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headrace.engine.precision.histogram import BINS, Histogram, _least_divergence, clip_at

floats = hnp.arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32, allow_nan=True))


@given(st.lists(floats, min_size=1, max_size=5), st.randoms())
def test_order_and_pieces_do_not_matter(pieces, random):
    first, second = Histogram(), Histogram()
    for piece in pieces:
        first.add(piece)
    values = np.concatenate(pieces)
    random.shuffle(values)
    second.add(values)
    assert (first.counts == second.counts).all()
    assert (first.top, first.largest, first.zeros, first.odd) == (
        second.top, second.largest, second.zeros, second.odd,
    )  # fmt: skip
    assert first.total + first.odd == values.size


def test_bins_are_those_of_numpy():
    values = np.random.default_rng(0).normal(0, 3, 10_000).astype(np.float32)
    made = Histogram()
    made.add(values)
    expected, _ = np.histogram(np.abs(values), BINS, range=(0, made.top))
    assert (made.counts == expected).all()
    assert made.top == 16.0


def test_what_is_no_number_is_counted_apart():
    made = Histogram()
    made.add(np.float32([np.nan, np.inf, -1, 0]))
    assert (made.odd, made.zeros, made.largest, made.total) == (2, 1, 1.0, 2)
    assert clip_at(Histogram(), "entropy") == 0


@given(hnp.arrays(np.float32, st.integers(1, 500), elements=st.floats(-100, 100, width=32)))
def test_percentile_is_the_quantile_of_the_values(values):
    made = Histogram()
    made.add(values)
    for percent in (50, 90, 99.9, 100):
        clip = clip_at(made, "percentile", percent)
        exact = np.quantile(np.abs(values), percent / 100, method="inverted_cdf")
        assert exact - 1e-30 <= clip <= exact + made.top / BINS
        assert clip <= made.largest
    assert clip_at(made, "minmax") == np.abs(values).max()


def slow_divergence(counts, keep, levels=128):
    """As the talk says it, bin by bin."""
    p = counts[:keep].astype(float)
    inside = p.copy()
    p[-1] += counts[keep:].sum()
    q = np.zeros(keep)
    for level in range(levels):
        a, b = level * keep // levels, (level + 1) * keep // levels
        there = p[a:b] > 0
        if there.any():
            q[a:b][there] = inside[a:b].sum() / there.sum()
    q = np.where(p > 0, np.maximum(q, 1e-4), 0)
    mask = p > 0
    p, q = p[mask] / p.sum(), q[mask] / max(inside.sum(), 1e-4)
    return float((p * np.log(p / q)).sum())


@pytest.mark.parametrize("kind", ["normal", "laplace", "tail", "sparse", "uniform"])
@pytest.mark.slow
def test_entropy_agrees_with_the_slow_way(kind):
    rng = np.random.default_rng(3)
    values = {
        "normal": rng.normal(0, 1, 40_000),
        "laplace": rng.laplace(0, 1, 40_000),
        "tail": np.concatenate([rng.normal(0, 1, 40_000), [60.0, 61.0]]),
        "sparse": rng.choice([0.5, 1.0, 7.0, 30.0], 400),
        "uniform": rng.uniform(0, 1.99, 40_000),
    }[kind]
    made = Histogram()
    made.add(values.astype(np.float32))
    used = np.flatnonzero(made.counts)[-1] + 1
    chosen = _least_divergence(made.counts)
    tried = sorted({*range(128, used + 1, 4), int(used)})
    slow = {keep: slow_divergence(made.counts, keep) for keep in tried}
    assert slow[chosen] <= min(slow.values()) + 1e-9


def test_entropy_clips_a_lonely_outlier_and_nothing_of_an_even_spread():
    rng = np.random.default_rng(5)
    made = Histogram()
    made.add(np.append(rng.normal(0, 1, 100_000), 200.0).astype(np.float32))
    assert clip_at(made, "entropy") < 20
    even = Histogram()
    even.add(rng.uniform(-1.9, 1.9, 100_000).astype(np.float32))
    assert clip_at(even, "entropy") > 1.85


def test_entropy_clips_about_where_the_tools_do():
    from onnxruntime.quantization.calibrate import HistogramCollector

    values = np.random.default_rng(7).laplace(0, 1, 200_000).astype(np.float32)
    made = Histogram()
    made.add(values)
    theirs = HistogramCollector("entropy", True, 1024, 128, 99.99, "same")
    theirs.collect({"x": values})
    _, high, *_ = theirs.get_entropy_threshold(theirs.histogram_dict["x"], 128)
    assert clip_at(made, "entropy") == pytest.approx(float(high), rel=0.5)
