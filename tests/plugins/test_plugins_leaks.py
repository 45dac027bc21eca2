"""Whole lives of engines with plugins leave nothing behind. benchmarks/cut.py lives 10,000."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace.engine import Plan
from headrace.engine.builder import BuildOptions, build
from tests.memory import resident
from tests.plugins.life_cycles import live
from tests.plugins.models import conv_plugin_conv, network, registry
from tests.plugins.samples import PLUGINS, Watched

LIVES, WARM = 300, 100
KIB = 1024


@pytest.mark.slow
def test_engines_with_plugins_keep_memory_flat(tmp_path: Path) -> None:
    Watched.reset()
    known = registry()
    net = network(conv_plugin_conv()[0], tmp_path)
    x = np.ones((1, 3, 8, 8), np.float32)
    before = 0
    for number in range(LIVES):
        built = build(net, BuildOptions(threads=1, registry=known))
        built.registry = known
        data = b"".join(built.to_chunks())
        built.open_session(threads=1).close()
        plan = Plan.from_bytes(data)
        plan.registry = known
        with plan.open_session(threads=1) as session:
            session.run({"x": x})
        if number == WARM:
            gc.collect()
            before = resident()
    gc.collect()
    assert Watched.made == Watched.destroyed
    assert Watched.twice == 0
    assert (Watched.initialized, Watched.attached) == (Watched.terminated, Watched.detached)
    assert resident() - before < 6 * KIB * KIB  # a leak of one 32 KiB object a life is seen


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(PLUGINS))
def test_no_object_of_a_plugin_survives_its_life(kind: str) -> None:
    def alive() -> int:
        gc.collect()
        return sum(isinstance(o, PLUGINS[kind]) for o in gc.get_objects())

    start: Any = alive()
    for _ in range(20):
        live(PLUGINS[kind], profiles=2, contexts=2)
    assert alive() == start
