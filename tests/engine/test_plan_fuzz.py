"""The plan reader meets anything: a plan or an EngineError, never something else."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.engine import BuildOptions, Plan, build
from headrace.errors import EngineError
from headrace.network import network_from_onnx
from tests.engine.plan_bytes import PREFIX, build_header, reseal, split
from tests.fuzz import fuzz_plan
from tests.fuzz.edits import EDITS, edited, places, values
from tests.network.onnx_models import image_model, save
from tests.profiles import examples

FUZZ = Path(__file__).parents[1] / "fuzz"
SEEDS = sorted((FUZZ / "seeds" / "plan").glob("*"))


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    network = network_from_onnx(save(image_model((2, 3, 4, 6)), folder / "m.onnx"))
    return b"".join(build(network, BuildOptions(max_batch=4)).to_chunks())


def test_there_are_seeds():
    assert len(SEEDS) >= 10


@pytest.mark.parametrize("seed", SEEDS, ids=lambda p: p.name)
def test_seeds_replay(seed):
    fuzz_plan.one_input(seed.read_bytes())


@pytest.mark.parametrize("mode", range(fuzz_plan.MODES))
@given(data=st.binary(max_size=400))
def test_any_bytes(mode, data):
    fuzz_plan.one_input(bytes([mode]) + data)


changes = st.lists(st.tuples(st.sampled_from(EDITS), places, values), min_size=1, max_size=4)


def damaged(data, changes):
    for change in changes:
        data = edited(data, *change)
    return data


@settings(max_examples=examples(300))
@given(changes=changes)
def test_a_mutated_plan_is_refused_or_the_same(valid, changes):
    data = damaged(valid, changes)
    try:
        plan = Plan.from_bytes(data)
    except EngineError:
        return
    assert b"".join(plan.to_chunks()) == valid


@settings(max_examples=examples(300))
@given(changes=changes)
def test_a_mutated_header_behind_a_hash_that_fits(valid, changes):
    _, header, blobs = split(valid)
    fuzz_plan.read_plan(fuzz_plan.seal(damaged(header, changes), blobs))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@settings(max_examples=examples(300))
@given(data=st.data(), value=values)
def test_any_value_anywhere_in_the_header(valid, data, value):
    header = build_header(valid)
    node = header
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        key = data.draw(st.sampled_from(sorted(keys)))
        if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.booleans()):
            node[key] = value
            break
        node = node[key]
    fuzz_plan.read_plan(reseal(valid, json.dumps(header).encode()))


@given(prefix=st.binary(min_size=PREFIX.size - 8, max_size=PREFIX.size - 8))
def test_any_prefix(valid, prefix):
    fuzz_plan.read_plan(valid[:8] + prefix + valid[PREFIX.size :])
