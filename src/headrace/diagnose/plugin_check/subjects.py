"""Plugins to check with their inputs: of a model's nodes, given, or tried out."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import ConfigError, PluginError
from headrace._core.gpu.cuda import why_no_gpu
from headrace._core.types import DType
from headrace.binary.gpu_code import gpu_evidence
from headrace.diagnose.plugin_check.breach import Breach
from headrace.diagnose.plugin_check.isolation import in_copy
from headrace.diagnose.plugin_check.lives import Shape, Shapes, Subject, added, lived, run
from headrace.engine.builder import BuildOptions
from headrace.engine.input_shapes import complete_infer_dims
from headrace.engine.plugin_graph.plugin_layers import BATCH, measure_on_noise
from headrace.infer.model.image_input import axis_order
from headrace.infer.model.network_source import network_source, no_model
from headrace.infer.model.precision import ConfigPrecision
from headrace.network.ir import node_from_proto
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins.custom_files import load_custom_plugins
from headrace.plugins.field_data import PluginField, PluginFieldCollection, PluginFieldType
from headrace.plugins.fields import field_of_value, fields_of
from headrace.plugins.loading import PYTHON_SUFFIXES
from headrace.plugins.lookup import find_creator
from headrace.plugins.negotiate import closest, network_types
from headrace.plugins.nodes import Views, resolve
from headrace.plugins.registry import PluginRegistry

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.network.network import Network

BATCHES = (1, 2, 5)
ODD_SHAPES: tuple[Shape, ...] = ((2, 3, 17, 13), (2, 5, 35), (2, 35), (2, 3, 5, 7, 3))
"""The check tries these shapes where the caller names none; odd sizes find missing tails."""
MOST_INPUTS = 4
TYPES = ("float32", "float16", "float64", "int8", "int32", "int64", "uint8", "bool")
_INPUT = re.compile(r"(?:(?P<type>[a-z]+\d*):)?(?P<shape>\d+(?:x\d+)*)")


def parsed_input(text: str) -> tuple[DType, Shape]:
    """Read `float32:2x3x17x13`; the type is float32 where it is left out.

    Raises:
        ConfigError: it is no such text.
    """
    match = _INPUT.fullmatch(text)
    kind = (match["type"] or "float32") if match else ""
    if match is None or kind not in TYPES:
        raise ConfigError(
            f"--input {text}",
            expected="TYPE:SHAPE of one input, such as float32:2x3x17x13; types are "
            + ", ".join(TYPES),
        )
    return np.dtype(kind), tuple(map(int, match["shape"].split("x")))


def parsed_field(text: str) -> tuple[str, object]:
    """Read `name=value`: a number, a list of numbers in brackets, else a text.

    Raises:
        ConfigError: it is no such text.
    """
    name, mark, value = text.partition("=")
    if not mark or not name:
        raise ConfigError(f"--field {text}", expected="NAME=VALUE")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name, value


def sized(
    inputs: Sequence[tuple[DType, Shape]],
) -> tuple[tuple[TensorSpec, ...], tuple[Shapes, ...]]:
    """Specs and sizes: the leading axis of the first input is the batch, and differs."""
    batch = inputs[0][1][0] if inputs and inputs[0][1] else 0
    specs = []
    for number, (dtype, shape) in enumerate(inputs):
        free = bool(shape) and shape[0] == batch
        axes = (None, *shape[1:]) if free else shape
        specs.append(TensorSpec(f"input{number}", dtype, axes))
    sizes = dict.fromkeys(
        tuple(
            (items, *shape[1:]) if spec.shape[:1] == (None,) else shape
            for spec, (_, shape) in zip(specs, inputs, strict=True)
        )
        for items in sorted({1, *BATCHES, batch} - {0})
    )
    return tuple(specs), tuple(sizes)


def why_no_kernels(creator: Any) -> str | None:
    """Why kernels of a library cannot be launched here; None if it has none, or they can."""
    library = Path(str(getattr(creator, "library", "")))
    if not library.suffix or library.suffix in PYTHON_SUFFIXES:
        return None
    evidence, reason = gpu_evidence(library), why_no_gpu()
    return f"{evidence}, and {reason}" if evidence and reason else None


def fields_given(creator: Any, values: Mapping[str, object]) -> PluginFieldCollection:
    """The fields of a creator for plain values; others are ignored."""
    fields = []
    for declared in creator.field_names:
        if declared.name in values:
            made = field_of_value(declared.name, values[declared.name], declared.type)
            if made is not None:
                fields.append(made)
    return PluginFieldCollection(fields)


def fields_tried(creator: Any) -> PluginFieldCollection:
    """A value for each field: one of whole numbers and floats, "a" of texts."""
    fields = []
    for declared in creator.field_names:
        if declared.type == PluginFieldType.CHAR:
            fields.append(PluginField(declared.name, b"a\0", PluginFieldType.CHAR))
            continue
        kind = declared.type.numpy
        unknown = declared.type in (PluginFieldType.UNKNOWN, PluginFieldType.DIMS)
        array = np.ones(1, np.int32 if unknown else kind)
        fields.append(
            PluginField(declared.name, array, PluginFieldType.INT32 if unknown else declared.type)
        )
    return PluginFieldCollection(fields)


@dataclass(slots=True)
class Trial:
    """Result of a search for fields and inputs that a plugin takes.

    Attributes:
        subject: the plugin with them; None if there are none.
        guessed: which of them nobody gave.
        refusals: why others were not taken, each once.
    """

    subject: Subject | None = None
    guessed: list[str] = field(default_factory=list)
    refusals: list[Breach] = field(default_factory=list)

    def refuse(self, breach: Breach | None) -> None:
        """Keep a refusal."""
        if breach is not None and breach.event not in {b.event for b in self.refusals}:
            self.refusals.append(breach)


def tried(
    creator: Any, values: Mapping[str, object], inputs: Sequence[tuple[DType, Shape]]
) -> Trial:
    """Find fields and inputs that a plugin takes, where they are not given.

    Inputs are taken if the plugin runs with them, or fails alike with all that it has shapes for.
    """
    trial = Trial()
    collections = [fields_given(creator, values)]
    if not values and len(fields_tried(creator)):
        collections.append(fields_tried(creator))
    shapes = [list(inputs)] if inputs else _combinations()
    builds: Subject | None = None
    for fields in collections:
        if fields is not collections[0]:
            trial.guessed = [f"fields {', '.join(f.name for f in fields)} of value 1"]
        for given in shapes:
            subject = Subject(creator, fields, *sized(given))
            accepted, breach = in_copy(partial(_takes, subject))
            if breach is not None and breach.clause == "create":
                if reason := why_no_kernels(creator):  # creators take memory of a GPU
                    breach = replace(breach, event=f"{breach.event}; {reason}")
                trial.refuse(breach)
                break
            if inputs:
                trial.subject = subject
                return trial
            if accepted and why_no_kernels(creator) is None:
                _, breach = in_copy(partial(_runs, subject))
            if accepted and (breach is None or breach.clause in _OF_MEMORY):
                trial.subject = subject
                trial.guessed.append("inputs")
                return trial
            trial.refuse(breach)
            builds = builds or (subject if accepted else None)
    if builds is not None and len(trial.refusals) == 1:
        trial.subject = builds
        trial.guessed.append("inputs")
    return trial


_OF_MEMORY = frozenset({
    "outputs-written", "outputs-bounds", "inputs-read-only", "inputs-bounds", "workspace-bounds",
    "addresses-kept",
})  # fmt: skip
"""Breaches of a run that do not come of inputs which a plugin does not take."""


def _runs(subject: Subject) -> None:
    """Run a plugin once."""
    size = subject.sizes[-1]
    run(lived(subject).context(), subject, subject.inputs(size))


def _combinations() -> list[list[tuple[DType, Shape]]]:
    kinds = (np.dtype(np.float32), np.dtype(np.int32))
    return [
        [(kind, shape)] * number
        for kind, number, shape in product(kinds, range(1, MOST_INPUTS + 1), ODD_SHAPES)
    ]


def _takes(subject: Subject) -> bool:
    """Whether a plugin has shapes and forms for these inputs."""
    layer = added(subject, subject.made())
    layer.output_shapes([s.dims for s in subject.specs])
    kinds = [closest(s.dtype) for s in subject.specs]
    inputs = [s.dtype for s in subject.specs]
    types = network_types(layer.output_types(kinds), inputs, weak=layer.generation != "V3")
    try:
        layer.build(subject.specs, types, [subject.ranges()], scales=subject.scales(len(types)))
    except PluginError as error:
        refusing = ("supports_format", "get_output", "configure")
        method = str(error.data.get("method", "supports_format"))
        if method.startswith(refusing):
            raise
    return True


def of_config(cfg: ModelConfig, backend: str | None = None) -> tuple[Network, BuildOptions]:
    """The network of a config, its plugins loaded into this process, and options to build it.

    Raises:
        HeadraceError: there is none.
    """
    cfg = cfg.with_overrides(custom_lib_guard="never")  # calls are seen in this process only
    load_custom_plugins(cfg.custom_lib_path)
    source, _ = network_source(cfg, [])
    if source is None:
        raise no_model(cfg)
    decision = ConfigPrecision(cfg).decide(backend or "onnxruntime")
    options = BuildOptions(
        max_batch=cfg.batch_size,
        precision=decision.precision,
        rules=decision.rules,
        infer_dims=complete_infer_dims(cfg.infer_dims),
        input_order=axis_order(cfg),
        runtime=backend,
    )
    return source.network(), options


def of_network(
    network: Network, options: BuildOptions, registry: PluginRegistry
) -> list[tuple[Subject, list[str]]]:
    """The plugin nodes of a network, with notices about their attributes.

    Raises:
        HeadraceError: the network cannot be read as far as its plugins.
    """
    rows, breach = in_copy(lambda: _node_rows(network, options, registry))
    if breach is not None:
        raise PluginError(
            f"the model's plugins cannot be made: {breach.event}",
            where=str(network.path),
            fix=list(breach.hints),
            data={"clause": breach.clause},
        )
    nodes = {n.name: n for n in network.to_proto().graph.node}
    subjects = []
    for name, specs, sizes, values in rows:
        node = nodes.get(name)
        creator = None if node is None else find_creator(node, registry)
        if node is None or creator is None:
            continue
        fields, notices = fields_of(node_from_proto(node), creator, f"node {name!r}")
        subject = Subject(
            creator,
            fields,
            tuple(TensorSpec(n, np.dtype(k), tuple(s)) for n, k, s in specs),
            tuple(dict.fromkeys(tuple(map(tuple, size)) for size in sizes)),
            tuple(map(tuple, values)),
            network.implicit_batch,
            name,
        )
        subjects.append((subject, [str(f) for f in notices]))
    return subjects


def _node_rows(network: Network, options: BuildOptions, registry: PluginRegistry) -> list[Any]:
    """Types and shapes of the tensors of a model's plugin nodes, as JSON."""
    proto = network.to_proto()
    for number, node in enumerate(proto.graph.node):
        if not node.name:
            node.name = f"{node.op_type}_{number}"
    inputs, free = [], {}
    dims = options.infer_dims
    for number, spec in enumerate(network.inputs):
        shape: list[int | str | None] = list(spec.shape)
        if number == 0 and dims is not None and len(shape) == len(dims) + 1:
            shape[1:] = [d if d is not None else s for s, d in zip(shape[1:], dims, strict=True)]
        if shape and shape[0] is None:
            shape[0] = BATCH
        inputs.append(TensorSpec(spec.name, spec.dtype, tuple(shape)))
        free[spec.name] = tuple(shape)

    def at(items: int) -> dict[str, Any]:
        return {
            name: tuple(
                d if isinstance(d, int) else items if axis == 0 else 32 * (1 + items // 2)
                for axis, d in enumerate(shape)
            )
            for name, shape in free.items()
        }

    low, middle, high = (at(n) for n in BATCHES)
    views = Views(free, ((low, middle, high),))
    measure = measure_on_noise(inputs)
    resolved = resolve(network, proto, views, registry, measure, str(network.path or "the model"))
    rows = []
    for node in resolved.nodes:
        if not node.created:  # code made it, not a creator
            continue
        ranges = node.ranges[0]
        specs = [[i.name, i.dtype.str, list(i.shape)] for i in node.infos]
        sizes = [list(map(list, s)) for s in (ranges.min, ranges.opt, ranges.max)]
        rows.append([node.name, specs, sizes, list(map(list, ranges.values))])
    return rows
