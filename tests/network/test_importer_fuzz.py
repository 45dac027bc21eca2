"""The importers meet anything: a network or a ModelError, in little memory, and no file written."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ModelError
from headrace.network.darknet.importer import network_from_darknet_bytes
from headrace.network.uff.importer import network_from_uff_bytes
from tests.fuzz import fuzz_importers as fuzz
from tests.fuzz.edits import EDITS, edited, places, values
from tests.profiles import examples

FUZZ = Path(__file__).parents[1] / "fuzz"
SEEDS = sorted((FUZZ / "seeds" / "importers").glob("*"))


def test_there_are_seeds():
    assert len(SEEDS) >= 15


@pytest.mark.parametrize("seed", SEEDS, ids=lambda p: p.name)
def test_seeds_replay(seed):
    fuzz.one_input(seed.read_bytes())


@pytest.mark.parametrize("name", ["caffe_valid", "uff_valid", "darknet_valid", "caffe_v1_legacy"])
def test_valid_seeds_are_valid(name):
    data = (FUZZ / "seeds" / "importers" / name).read_bytes()
    text, _, weights = data[1:].partition(fuzz.MARK)
    here = Path("x")
    if name.startswith("caffe"):
        fuzz.caffe.network_from_caffe_bytes(text, weights, here, here)
    elif name.startswith("uff"):
        network_from_uff_bytes(data[1:], here)
    else:
        network_from_darknet_bytes(text, weights, here, here)


@pytest.mark.parametrize("mode", range(fuzz.MODES))
@given(data=st.binary(max_size=400))
def test_any_bytes(mode, data):
    fuzz.one_input(bytes([mode]) + data)


changes = st.lists(
    st.tuples(
        st.sampled_from([*EDITS, "number", "swap"]),
        places,
        values,
        st.sampled_from(
            [b"0", b"-1", b"1", b"2", b"3", b"99999999", b"4294967297", b"0.5", b"nan"]
        ),
    ),
    min_size=1,
    max_size=4,
)


def changed(data, edits):
    for kind, place, value, number in edits:
        at = int(place * len(data))
        if kind in EDITS:
            data = edited(data, kind, place, value)
        elif kind == "number":
            start = next((i for i in range(at, len(data)) if data[i : i + 1].isdigit()), at)
            end = start
            while data[end : end + 1].isdigit():
                end += 1
            data = data[:start] + number + data[end:]
        else:
            half = len(value) * 4
            data = (
                data[:at]
                + data[at + half : at + 2 * half]
                + data[at : at + half]
                + data[at + 2 * half :]
            )
    return data


@settings(max_examples=examples(300))
@given(seed=st.sampled_from(SEEDS), edits=changes)
def test_changed_seeds(seed, edits):
    data = seed.read_bytes()
    fuzz.one_input(data[:1] + changed(data[1:], edits))


BOMBS = {
    "caffe_input": b'\x03input: "d" input_dim: 1 input_dim: 65536 input_dim: 65536 input_dim: 65536'
    b'\nlayer { name: "r" type: "ReLU" bottom: "d" top: "o" }',
    "caffe_tile": b'\x03input: "d" input_dim: 1 input_dim: 4 input_dim: 4 input_dim: 4\n'
    + b"".join(
        b'layer { name: "%d" type: "Tile" bottom: "%s" top: "t%d" tile_param { tiles: 999999 } }\n'
        % (i, b"d" if i == 0 else b"t%d" % (i - 1), i)
        for i in range(8)
    ),
    "caffe_doubling": b'\x03input: "d" input_dim: 1 input_dim: 4 input_dim: 64 input_dim: 64\n'
    + b"".join(
        b'layer{type:"Concat"bottom:"%s"bottom:"%s"top:"t%d"}' % (x, x, i)
        for i, x in enumerate([b"d"] + [b"t%d" % i for i in range(16)])
    ),
    "caffe_priors": b'\x03input: "d" input_dim: 1 input_dim: 1 input_dim: 4000 input_dim: 4000\n'
    b'layer { name: "p" type: "PriorBox" bottom: "d" bottom: "d" top: "o" prior_box_param { '
    + b"min_size: 9 " * 40
    + b"} }",
    "caffe_weights": b'\x00input: "d" input_dim: 1 input_dim: 3 input_dim: 4 input_dim: 4\n'
    b'layer { name: "c" type: "InnerProduct" bottom: "d" top: "o" '
    b"inner_product_param { num_output: 2000000000 } }"
    b"\n----\n\xa2\x06\x05\x0a\x01c\x3a\x00",
    "caffe_brackets": b"\x03" + b"a{" * 500,
    "darknet_sizes": b"\x04[net]\nwidth=60000\nheight=60000\n[upsample]\nstride=4000\n",
    "darknet_filters": b"\x04[net]\nwidth=8\nheight=8\n"
    b"[convolutional]\nfilters=2000000000\nsize=9\n",
    "darknet_sections": b"\x04[net]\nwidth=8\nheight=8\n" + b"[a]\n" * 240,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_kilobyte_stays_small(name, tmp_path):
    """In a process that may use 1 GB more than it starts with, and may write no file."""
    assert len(BOMBS[name]) <= 1024
    code = """
import os, resource, sys
sys.path.insert(0, sys.argv[1])
import numpy, onnx, headrace.network.ir
import fuzz_importers
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 10**9, used + 10**9))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
fuzz_importers.one_input(sys.stdin.buffer.read())
# not ru_maxrss: that one is never below what the parent had
status = open("/proc/self/status").read()
sys.stdout.write(status.split("VmHWM:")[1].split()[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(FUZZ)], input=BOMBS[name], capture_output=True,
        cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert int(done.stdout) < 500_000, "kilobytes"
    assert not list(tmp_path.iterdir())


def test_bombs_are_refused():
    for name in ("caffe_input", "caffe_doubling", "caffe_priors", "caffe_brackets"):
        with pytest.raises(ModelError):
            fuzz.import_caffe(BOMBS[name][1:], b"\xa2\x06\x00", fuzz.FittingWeights)
