"""Checks of results: in known memory, again, after other shapes, of copies."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

import numpy as np

from headrace._core import _native
from headrace._core.errors import HeadraceError
from headrace._core.text import error_text
from headrace._core.threads import start_thread
from headrace._core.types import Array
from headrace.diagnose.plugin_check.allocator import perturb
from headrace.diagnose.plugin_check.breach import Breach, broken
from headrace.diagnose.plugin_check.lives import (
    USUAL,
    PluginLife,
    Shapes,
    Subject,
    differs,
    lived,
    run,
)
from headrace.plugins.checks import as_tactics, status_of
from headrace.plugins.driver_v3 import BUILD, RUNTIME
from headrace.plugins.drivers import load_engine_plugin
from headrace.plugins.layer import EnginePlugin, EngineSpec
from headrace.plugins.registry import PluginRegistry

THREAD_RUNS = 12
_LIVES = 4
_NO_CLONE = frozenset({"clone", "attach_to_context"})
_NO_ATTACH = frozenset({"attach_to_context"})


def reference(subject: Subject, size: Shapes) -> list[Array]:
    """The outputs of a plugin of its own for one size."""
    return run(lived(subject).context(), subject, subject.inputs(size))


def check_enqueue(subject: Subject) -> list[Breach]:
    """Run each size, and find out which memory is written and which is read."""
    breaches = []
    life = lived(subject)
    for size in subject.sizes:
        context, inputs = life.context(), subject.inputs(size)
        first = run(context, subject, inputs)
        if text := differs(first, run(context, subject, inputs)):
            raise broken("deterministic", f"the same inputs again: {text}")
        second = run(context, subject, inputs, USUAL.changed(second=True))
        unwritten = _check_outputs(context.spec, first, second)
        if unwritten is not None:
            breaches.append(unwritten)
            continue
        if text := differs(first, run(context, subject, inputs, USUAL.changed(known=0x3C))):
            raise broken("inputs-bounds", f"results depend on bytes around the tensors: {text}")
        if text := differs(first, run(context, subject, inputs, USUAL.changed(scratch=0x3C))):
            raise broken("workspace-content", f"results depend on what the workspace held: {text}")
    return breaches


def _check_outputs(
    spec: EngineSpec, first: Sequence[Array], second: Sequence[Array]
) -> Breach | None:
    """Compare two runs with different patterns in the outputs before."""
    partly = None
    for number, (a, b, form) in enumerate(zip(first, second, spec.output_forms, strict=True)):
        if a.shape != b.shape:
            raise broken("outputs-written", f"the shape of output {number} depends on what it held")
        width = np.dtype(f"u{a.itemsize}")
        held = [
            np.array(around.fill(form.type, a.itemsize), np.uint64).astype(width)
            for around in (USUAL, USUAL.changed(second=True))
        ]
        left = (np.ascontiguousarray(a).view(width) == held[0]) & (
            np.ascontiguousarray(b).view(width) == held[1]
        )
        count = int(np.count_nonzero(left))
        if count and count == a.size:
            raise broken("outputs-written", f"enqueue wrote nothing to output {number}")
        if count:
            at = list(map(int, np.argwhere(left)[0])) if left.ndim else []
            text = f"enqueue left {count:,} of {a.size:,} elements of output {number} unwritten, "
            partly = Breach("outputs-written", f"{text}the first at {at}")
            continue
        if np.any(np.ascontiguousarray(a).view(width) != np.ascontiguousarray(b).view(width)):
            text = f"output {number} depends on what its memory held before: it is read"
            raise broken("outputs-written", text)
    return partly


def check_copies(subject: Subject) -> list[Breach]:
    """Results of the object that the creator made, beside those of its copies."""
    size = subject.sizes[-1]
    inputs = subject.inputs(size)
    copied = reference(subject, size)
    attached = run(lived(subject, without=_NO_ATTACH).context(), subject, inputs)
    if text := differs(attached, copied):
        return [Breach("attach", f"what attachToContext returns computes other results: {text}")]
    original = run(lived(subject, without=_NO_CLONE).context(), subject, inputs)
    if text := differs(original, copied):
        return [Breach("clone-same", f"the original and its clone: {text}")]
    return []


def check_ends(subject: Subject) -> list[Breach]:
    """Objects that outlive those they came from."""
    size = subject.sizes[-1]
    inputs = subject.inputs(size)
    if text := _depends(subject, _NO_CLONE):  # nothing has ended there: it is another fault
        return [Breach("deterministic", f"results depend on memory that was never set: {text}")]
    perturb(0x55)
    first = subject.made()
    expected = run(lived(subject, first.clone("parse")).context(), subject, inputs)
    second = first.clone("parse")
    first.destroy("parse")
    if text := differs(expected, run(lived(subject, second).context(), subject, inputs)):
        return [Breach("destroy", f"a clone whose original was destroyed: {text}")]
    life = lived(subject)
    one, two = life.context(), life.context()
    run(one, subject, inputs)
    life.layer.close()
    one.close()
    if text := differs(expected, run(two, subject, inputs)):
        return [Breach("destroy", f"a context after another one ended: {text}")]
    two.close()
    life.engine.close()
    return []


def check_initialize(subject: Subject) -> list[Breach]:
    """Initialize after terminate, as timing does."""
    life = lived(subject)
    if not life.engine.life.initialises:
        return []
    size = subject.sizes[-1]
    inputs, expected = subject.inputs(size), reference(subject, size)
    for instance in life.engine.instances:
        instance.call("build", "terminate")
        status_of(instance, "build", "initialize")
    if text := differs(expected, run(life.context(), subject, inputs)):
        return [Breach("initialize", f"after terminate and initialize: {text}")]
    return []


def check_memory(subject: Subject) -> list[Breach]:
    """Memory that was never set, or is not the plugin's any more."""
    if text := _depends(subject):
        text = f"results depend on memory that was never set, or was given back: {text}"
        return [Breach("deterministic", text)]
    return []


def _depends(subject: Subject, without: frozenset[str] = frozenset()) -> str:
    """Say how results differ with the bytes in free memory; `without` as of `lived`."""
    size = subject.sizes[-1]
    results = []
    for byte in (0x55, 0xAA):
        perturb(byte)
        for _ in range(_LIVES):  # what they give back is filled, and taken again
            lived(subject).close()
        perturb(byte)
        context = lived(subject, without=without).context()
        results.append(run(context, subject, subject.inputs(size)))
    perturb(0)
    return differs(*results)


def loaded(subject: Subject, life: PluginLife) -> EnginePlugin:
    """The layer of another life, saved and loaded."""
    saved = life.engine.save()
    life.close()
    registry = PluginRegistry()
    space = saved.spec.namespace
    registry.register_creator(subject.creator, space)
    engine = load_engine_plugin(saved, registry)
    engine.finish()
    return engine


def check_loaded(subject: Subject) -> list[Breach]:
    """A plugin that was saved and loaded."""
    expected = [reference(subject, size) for size in subject.sizes]
    perturb(0x55)
    engine = loaded(subject, lived(subject))
    for size, outputs in zip(subject.sizes, expected, strict=True):
        got = run(engine.context(), subject, subject.inputs(size))
        if text := differs(outputs, got):
            return [
                Breach("deserialize-same", f"before it was saved and after it was loaded: {text}")
            ]
    again = loaded(subject, PluginLife(subject, lived(subject).layer, engine))
    got = run(again.context(), subject, subject.inputs(subject.sizes[-1]))
    if text := differs(expected[-1], got):
        return [Breach("deserialize-same", f"saved again after it was loaded: {text}")]
    return []


def check_shapes(subject: Subject) -> list[Breach]:
    """Sizes in turns in one context."""
    expected = [reference(subject, size) for size in subject.sizes]
    context = lived(subject).context()
    last = len(subject.sizes) - 1
    for number in (0, last, 0, last // 2, last):
        got = run(context, subject, subject.inputs(subject.sizes[number]))
        if text := differs(expected[number], got):
            shapes = ", ".join(map(str, subject.sizes[number]))
            return [Breach("shape-change", f"inputs {shapes} after other shapes: {text}")]
    return []


def check_profiles(subject: Subject) -> list[Breach]:
    """Two optimisation profiles, with an object each."""
    expected = [reference(subject, size) for size in subject.sizes]
    life = lived(subject, profiles=[subject.ranges(0, 0), subject.ranges(0, -1)])
    context = life.context()
    for number in (0, len(expected) - 1, 0):
        got = run(context, subject, subject.inputs(subject.sizes[number]))
        if text := differs(expected[number], got):
            return [Breach("configure", f"in an engine of two profiles: {text}")]
    return []


def check_contexts(subject: Subject) -> list[Breach]:
    """Two contexts: in turns, then on two threads."""
    sizes = (subject.sizes[-1], subject.sizes[0])
    inputs = [subject.inputs(size, seed) for seed, size in enumerate(sizes, 1)]
    expected = [run(lived(subject).context(), subject, given) for given in inputs]
    life = lived(subject)
    contexts = [life.context() for _ in sizes]
    for which in (0, 1, 0, 1):
        got = run(contexts[which], subject, inputs[which])
        if text := differs(expected[which], got):
            return [Breach("contexts", f"two contexts in turns: {text}")]
    failures: list[str] = []
    start = threading.Barrier(len(contexts))

    def work(which: int) -> None:
        start.wait()
        for _ in range(THREAD_RUNS):
            if text := differs(expected[which], run(contexts[which], subject, inputs[which])):
                failures.append(text)
                return

    def failed(error: Exception) -> None:
        if not isinstance(error, threading.BrokenBarrierError):  # the other one failed
            brief = isinstance(error, HeadraceError)
            failures.append(f"{error:brief}" if brief else error_text(error))
        start.abort()

    threads = [
        start_thread(partial(work, which), name="headrace-contexts", failed=failed)
        for which in range(len(contexts))
    ]
    for thread in threads:
        thread.join()
    if failures:
        return [Breach("contexts", f"two contexts on two threads: {failures[0]}")]
    return []


def check_tactics(subject: Subject) -> list[Breach]:
    """Every tactic of a version-3 plugin."""
    life = lived(subject)
    if life.engine.spec.generation != "V3":
        return []
    instance = life.engine.instances[0]
    method = "get_valid_tactics"
    tactics = as_tactics(instance, method, instance.ask("build", BUILD, method))
    size = subject.sizes[-1]
    inputs, outputs = subject.inputs(size), None
    for tactic in tactics:
        context = life.context()
        status = context.instances[0].ask("load", RUNTIME, "set_tactic", tactic)
        if status not in (None, 0):
            raise broken("tactics", f"setTactic({tactic}) returned {status}, not 0")
        got = run(context, subject, inputs)
        if outputs is not None and (text := differs(outputs, got)):
            return [Breach("tactics", f"tactics {tactics[0]} and {tactic}: {text}")]
        outputs = got if outputs is None else outputs
    return []


def check_lent(subject: Subject) -> list[Breach]:
    """Fields and saved data that are out of reach after the call that was given them."""
    _native.host_lend_pages(True)
    check_saved_life(subject)
    return []


def check_saved_life(subject: Subject) -> None:
    """Make, run, save, load, run."""
    inputs = subject.inputs(subject.sizes[-1])
    life = lived(subject)
    run(life.context(), subject, inputs)
    run(loaded(subject, life).context(), subject, inputs)
