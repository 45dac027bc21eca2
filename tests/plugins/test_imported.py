"""Plugin nodes of UFF files: every class, shapes without the batch."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.engine.builder import BuildOptions, build
from headrace.errors import ModelError
from headrace.network.uff.importer import network_from_uff_bytes
from headrace.plugins.imported import ImportedPlugins
from tests.network.uff.models import node, source, uff
from tests.plugins.models import registry
from tests.plugins.samples import PLUGINS, Watched

pytestmark = pytest.mark.usefixtures("watched_anew")
X = np.random.default_rng(2).normal(size=(2, 3, 5, 6)).astype(np.float32)
RELU = node("r", "Activation", ["x"], func="relu")
MARK = node("m", "MarkOutput", ["y"])


def read(data: bytes, known: Any) -> Any:
    network = network_from_uff_bytes(
        data, Path("net.uff"), input_dims=(3, 5, 6), plugins=ImportedPlugins(known)
    )
    network.path = None  # there is no such file
    return network


@pytest.mark.parametrize("kind", list(PLUGINS))
def test_a_plugin_node_is_computed(kind: str) -> None:
    known = registry()
    plugin = node("p", f"_{PLUGINS[kind].__name__}", ["r"], factor=3.0)
    data = uff(source((-1, 3, 5, 6)), RELU, plugin, node("y", "Unary", ["p"], func="neg"), MARK)
    network = read(data, known)
    for _ in range(2):  # a network may be built twice
        plan = build(network, BuildOptions(max_batch=2, registry=known))
        plan.registry = known
        with plan.open_session() as session:
            for n in (2, 1):
                got = session.run({"x": X[:n]})["y"]
                np.testing.assert_allclose(got, -3 * np.maximum(X[:n], 0), rtol=1e-6)
    assert plan.header.plugins[0].generation == kind
    del network
    gc.collect()
    assert Watched.made == Watched.destroyed
    assert Watched.twice == 0


def test_an_unknown_plugin_is_told_and_nothing_is_left() -> None:
    known = registry()
    first = node("p", "_ScaleV3", ["x"], factor=3.0)
    data = uff(source((-1, 3, 5, 6)), first, node("y", "_Unheard_TRT", ["p"], size=3), MARK)
    with pytest.raises(ModelError) as caught:
        read(data, known)
    assert "the plugin 'Unheard_TRT' is not available" in str(caught.value)
    assert "size=3" in str(caught.value)
    assert "headrace init --plugin Unheard_TRT" in str(caught.value)
    assert Watched.made == Watched.destroyed
