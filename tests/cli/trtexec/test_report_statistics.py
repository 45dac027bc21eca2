"""The report's formulas against slow, obvious ones."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.trtexec.inference import Query
from headrace.cli.trtexec.report import (
    averages,
    percentile,
    summary,
    throughput,
    walltime_ms,
)

times = st.floats(0.001, 1e5)


def slow_percentile(values, percent):
    """Take the slowest away, one by one, as long as not more than so many are gone."""
    left = list(values)
    gone = 0
    while len(left) > 1 and (gone + 1) * 100 <= (100 - percent) * len(values):
        left.remove(max(left))
        gone += 1
    return max(left)


@given(st.lists(times, min_size=1, max_size=40), st.integers(0, 100))
def test_percentile(values, percent):
    assert percentile(values, percent) == slow_percentile(values, percent)


def test_percentiles_that_floats_get_wrong():
    assert percentile(range(1, 11), "90") == 9  # (1 - 0.9) * 10 is 0.9999… in floats
    assert percentile(range(1, 1001), "99.9") == 999
    assert percentile([5.0], "50") == 5.0


@given(st.lists(times, min_size=1, max_size=40))
def test_summary_is_what_the_values_say(values):
    text = summary(values, ["90", "99"])
    found = {k: float(v) for k, v in re.findall(r"([a-z]+(?:\(\d+%\))?) = (\S+) ms", text)}
    assert list(found) == ["min", "max", "mean", "median", "percentile(90%)", "percentile(99%)"]
    assert found["min"] == pytest.approx(min(values), rel=1e-5)
    assert found["max"] == pytest.approx(max(values), rel=1e-5)
    assert found["mean"] == pytest.approx(sum(values) / len(values), rel=1e-5)
    below = sum(v <= found["median"] * (1 + 1e-5) for v in values)
    above = sum(v >= found["median"] * (1 - 1e-5) for v in values)
    assert min(below, above) * 2 >= len(values)


def test_the_median_of_an_even_number_is_between_the_two():
    assert "median = 2.5 ms" in summary([10, 1, 3, 2], [])
    assert "median = 3 ms" in summary([10, 1, 3], [])


steps = st.tuples(*[st.floats(0, 100)] * 6)


def queries_of(rows):
    now, made = 0.0, []
    for gap, h2d, enqueue, wait, compute, d2h in rows:
        a = now + gap
        b = a + h2d
        c = b + enqueue
        d = c + wait
        e = d + compute + 0.01
        made.append(Query(a, b, b, c, d, e, e, e + d2h))
        now = e + d2h
    return made


@given(st.lists(steps, min_size=1, max_size=20), st.integers(1, 5), st.integers(1, 8))
def test_sums(rows, size, batch):
    queries = queries_of(rows)
    for query, (_, h2d, enqueue, _, compute, d2h) in zip(queries, rows, strict=True):
        assert query.latency == pytest.approx(h2d + compute + 0.01 + d2h, abs=1e-6)
        assert query.enqueue == pytest.approx(enqueue, abs=1e-6)
    wall = queries[-1].end_d2h - queries[0].start_h2d
    assert walltime_ms(queries) == wall
    assert throughput(queries, batch) == pytest.approx(1000 * batch * len(queries) / wall)
    groups = averages(queries, size)
    assert len(groups) == len(queries) // size
    for number, (compute, latency, _) in enumerate(groups):
        part = queries[number * size : (number + 1) * size]
        assert compute == pytest.approx(sum(q.compute for q in part) / size)
        assert latency == pytest.approx(sum(q.latency for q in part) / size)
