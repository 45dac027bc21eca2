"""Checks of memory that objects do not give back, method by method."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from headrace.diagnose.plugin_check.allocator import bytes_in_use
from headrace.diagnose.plugin_check.breach import Breach
from headrace.diagnose.plugin_check.lives import Subject, lived
from headrace.plugins.checks import status_of
from headrace.plugins.drivers import load_engine_plugin
from headrace.plugins.registry import PluginRegistry

ROUNDS, TURNS, WARM = 5, 24, 8
LEAST = 8
"""Bytes a turn; less is what the interpreter keeps."""


def check_leaks(subject: Subject) -> list[Breach]:
    """Repeat each part of a life, and count the bytes that stay."""
    if bytes_in_use() is None:
        return []
    gc.freeze()  # collections look at what is made from here on
    life = lived(subject)
    engine, layer = life.engine, life.layer
    context, inputs = life.context(), subject.inputs(subject.sizes[0])
    saved = engine.save()
    registry = PluginRegistry()
    registry.register_creator(subject.creator, saved.spec.namespace)
    first = engine.instances[0]

    def again() -> None:
        first.call("build", "terminate")
        status_of(first, "build", "initialize")

    parts: list[tuple[str, Callable[[], object]]] = [
        ("createPlugin and destroy", lambda: subject.made().destroy("parse")),
        ("clone and destroy", lambda: layer.instance.clone("parse").destroy("parse")),
        ("enqueue", lambda: context.run(inputs, shape_inputs=_values(subject))),
        ("attachToContext and the end of the context", lambda: engine.context().close()),
        ("saving", engine.save),
        ("loading and destroy", lambda: load_engine_plugin(saved, registry).close()),
    ]
    if engine.life.initialises:
        parts.append(("initialize and terminate", again))
    plugin = type(first.plugin)
    for name, act in parts:
        if lost := _lost(act) and _lost(act):  # what grows once is no leak
            text = f"{name}: {lost:,} bytes stay each time"
            return [Breach("leaks", text)]
        if objects := _objects(act, plugin):
            text = f"{name}: an object of {plugin.__name__} stays each time ({objects})"
            return [Breach("leaks", text)]
    return []


def _values(subject: Subject) -> list[Any]:
    return [np.array(v, np.int64) for v in subject.shape_values]


def _lost(act: Callable[[], object]) -> int:
    """Bytes that each turn leaves; 0 if rounds do not agree that there are some."""
    for _ in range(WARM):
        act()
    grown = []
    for _ in range(ROUNDS):
        before = bytes_in_use() or 0
        for _ in range(TURNS):
            act()
        grown.append((bytes_in_use() or 0) - before)
    usual = sorted(grown)[ROUNDS // 2]
    most_grow = sorted(grown)[1] >= LEAST * TURNS  # a collection may fall into one round
    return usual // TURNS if most_grow else 0


def _objects(act: Callable[[], object], kind: type) -> int:
    """Objects of a Python class that each turn leaves behind."""
    counts = []
    for _ in range(2):
        gc.collect()
        counts.append(sum(type(one) is kind for one in gc.get_objects()))
        for _ in range(TURNS):
            act()
    gc.collect()
    counts.append(sum(type(one) is kind for one in gc.get_objects()))
    grown = [b - a for a, b in pairwise(counts)]
    return min(grown) if min(grown) >= TURNS else 0
