"""Runs of one shape in the caller's memory: what the plugin is lent goes with the addresses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from signal import SIGSEGV
from typing import Any

import numpy as np
import pytest

from headrace._core.types import Array
from headrace.errors import PluginError
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins import DataType, array_at
from headrace.plugins.context import ContextPlugin
from headrace.plugins.drivers import add_layer
from headrace.plugins.layer import Ranges
from tests.plugins.samples import ScaleV3

SHAPE = (2, 3)


class Reaching(ScaleV3):
    """y = factor x, and a view of so many elements more than there are; it empties its lists."""

    more = 0

    def clone(self) -> Any:
        return Reaching(self.factor)

    def enqueue(self, ins: Any, outs: Any, inputs: Any, outputs: Any, ws: int, s: int) -> None:
        super().enqueue(ins, outs, inputs, outputs, ws, s)
        array_at(outputs[0], (6 + Reaching.more,), np.float32, writable=True)
        inputs.clear()
        outputs.clear()


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> ContextPlugin:
    monkeypatch.setattr(Reaching, "more", 0)
    float32 = np.dtype(np.float32)
    layer = add_layer(Reaching(), layer="one", input_types=[DataType.FLOAT])
    plugin = layer.build(
        [TensorSpec("x", float32, SHAPE)], [float32], [Ranges((SHAPE,), (SHAPE,), (SHAPE,))]
    )
    plugin.finish()
    made: ContextPlugin = plugin.context()
    return made


def run(context: ContextPlugin, x: Array, y: Array) -> None:
    y[...] = 0
    context.run_at([(x.ctypes.data, SHAPE)], lambda number, shape: y.ctypes.data)
    np.testing.assert_array_equal(y, 2 * x)


def test_a_plugin_may_change_the_lists_that_it_is_given(context: ContextPlugin) -> None:
    x, y = np.ones(SHAPE, np.float32), np.empty(SHAPE, np.float32)
    for _ in range(4):
        run(context, x, y)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("which", ["same", "input", "output"])
def test_memory_is_lent_in_every_run(context: ContextPlugin, times: int, which: str) -> None:
    x, y = np.ones(SHAPE, np.float32), np.empty(SHAPE, np.float32)
    for _ in range(times):
        run(context, x, y)
    Reaching.more = 1
    x, y = (x.copy() if which == "input" else x), (y.copy() if which == "output" else y)
    with pytest.raises(PluginError, match="needs 28 bytes; output 0 has 24 there"):
        run(context, x, y)
    Reaching.more = 0
    run(context, x, y)


CRASH = """
import ctypes, sys
import numpy as np
from headrace.engine import BuildOptions, build
from tests.plugins.models import conv_plugin_conv, network, registry
from tests.plugins.samples import ScaleDynamic
from pathlib import Path

def enqueue(self, ins, outs, inputs, outputs, ws, s):
    ctypes.memset(outputs[0], 0x5A, 1 << 30)

ScaleDynamic.enqueue = enqueue
made, _ = conv_plugin_conv()
plan = build(network(made, Path(sys.argv[1])), BuildOptions(registry=registry()))
plan.registry = registry()
with plan.open_session() as session:
    session.run({"x": np.ones((1, 3, 8, 8), np.float32)})
"""


def ended(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=120,
        check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip


@pytest.mark.parametrize(("status", "becomes"), [(0, 5), (3, 3)])
def test_a_plugin_that_calls_exit_is_no_success(tmp_path: Path, status: int, becomes: int) -> None:
    write = "ctypes.memset(outputs[0], 0x5A, 1 << 30)"
    assert write in CRASH
    done = ended(CRASH.replace(write, f"ctypes.CDLL(None).exit({status})"), tmp_path)
    assert done.returncode == becomes
    where = "plugin ScaleDynamic version 1, layer 'scale'"
    assert f"\nheadrace: exit({status}) in enqueue of {where}\n" in done.stderr


def test_a_plugin_that_ends_the_process_is_named_with_layer_and_place(tmp_path: Path) -> None:
    done = ended(CRASH, tmp_path)
    assert done.returncode == -SIGSEGV
    where = r"plugin ScaleDynamic version 1, layer 'scale'"
    place = r"\d+ bytes behind the end of output 0"
    assert re.search(rf"\nheadrace: SIGSEGV in enqueue of {where}: {place}", done.stderr)
    assert "headrace check-plugin LIBRARY" in done.stderr
    assert "--guard always" in done.stderr
