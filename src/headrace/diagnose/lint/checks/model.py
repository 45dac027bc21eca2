"""Checks of the model: its input, its outputs, its weights, the engine and the scales for INT8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace.config.enums import NetworkMode, NetworkType
from headrace.engine.backends import DEFAULT_BACKEND
from headrace.infer.classify import narrow_outputs
from headrace.infer.model.extra_inputs import by_rule
from headrace.infer.model.precision import ConfigPrecision
from headrace.infer.parsers.class_maps import Segmenter, refusal_of_types
from headrace.infer.trial import advised
from headrace.infer.watch.training import training_findings
from headrace.plugins.fields import attributes_left_out
from headrace.plugins.lookup import creator_of, unknown_nodes
from headrace.plugins.registry import known_plugins

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.diagnose.lint.subject import CheckedConfig
    from headrace.engine.precision.cache import CalibrationTable
    from headrace.network.tensor_spec import TensorSpec

_MOST_WEIGHTS = 1 << 29  # bytes that are read; what is beyond is not looked at
_HALF_MAX = 65504.0
_WEIGHED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def model_checks(checked: CheckedConfig) -> Iterator[Finding]:
    """Compare the model's file with the config; refusals join `checked.problems`."""
    yield from _input(checked)
    yield from _training(checked)
    yield from _outputs(checked)
    yield from weight_checks(checked)
    yield from _attributes(checked)
    yield from _precision(checked)


def _input(checked: CheckedConfig) -> Iterator[Finding]:
    cfg, inputs = checked.cfg, checked.dry.inputs
    if not inputs:
        return
    first = inputs[0]
    batch = first.shape[0] if first.shape else None
    if checked.network is not None and isinstance(batch, int) and batch != cfg.batch_size:
        text = f"the model fixes its batch at {batch}, and batch-size={cfg.batch_size}"
        yield Finding("batch-fixed", "info", text, cfg.where("batch_size"))
    scale = 1.0 if cfg.net_scale_factor <= 0 else cfg.net_scale_factor
    if first.dtype.kind in "iu" and scale * 255 < 32 and not cfg.input_tensor_from_meta:
        text = f"the input {first} takes integers, and net-scale-factor={scale:g} gives it 0 to "
        finding = Finding(
            "input-integers", "warning", f"{text}{255 * scale:.3g}", cfg.where("net_scale_factor")
        )
        yield advised(finding, [{"net-scale-factor": "1"}], basis="read")
    if len(inputs) > 1 and not cfg.input_tensor_from_meta:
        yield from _further_inputs(checked, inputs[1:])
    pre = checked.preprocessor
    if pre is not None:
        yield from pre.notices


def _further_inputs(checked: CheckedConfig, extra: Sequence[TensorSpec]) -> Iterator[Finding]:
    """Report the inputs beside the image that a rule fills, or that nothing fills."""
    choice, image = checked.dry.choice, checked.dry.image
    library = None if choice is None else choice.library
    if library is not None and library.input_initializer() is not None:
        return
    if image is None or (library is None and checked.cfg.custom_lib_path is not None):
        return  # it could not be loaded, which is told
    try:
        yield from by_rule(checked.cfg, extra, image)
    except HeadraceError as error:
        checked.problems.append(error)


def _training(checked: CheckedConfig) -> Iterator[Finding]:
    """The rules of the watch that need no image."""
    cfg, pre, stem = checked.cfg, checked.preprocessor, checked.stem
    if pre is None or stem is None:
        return
    with np.errstate(all="ignore"):
        findings = training_findings(
            cfg, pre, stem, checked.dry.labels, samples=(), frame=(0, 0),
            outputs=checked.dry.outputs,
        )  # fmt: skip
        first = {finding.code: finding for finding in reversed(list(findings))}
    for finding in first.values():
        yield finding.changed(where=cfg.where(finding.where or "onnx_file"))


def _outputs(checked: CheckedConfig) -> Iterator[Finding]:
    cfg, outputs, choice = checked.cfg, checked.dry.outputs, checked.dry.choice
    names = [spec.name for spec in outputs]
    missing = [name for name in cfg.output_blob_names if name not in names]
    if names and missing:
        text = f"the model has no output {', '.join(missing)}; it has {', '.join(names)}"
        text = f"output-blob-names: {text}; all outputs are used"
        yield Finding("output-names", "warning", text, cfg.where("output_blob_names"))
    if cfg.network_type is NetworkType.CLASSIFIER and choice and choice.parser is None:
        yield from narrow_outputs(outputs)
    if choice and isinstance(choice.parser, Segmenter):
        types = {spec.name: spec.dtype for spec in outputs}
        refusal = refusal_of_types(types, choice.parser.generation)
        checked.problems += [refusal] if refusal is not None else []
    flat = outputs and all(len(spec.shape) == 2 for spec in outputs)
    if cfg.network_type is NetworkType.SEGMENTATION and flat and not cfg.custom_lib_path:
        text = f"network-type=2 (segmentation), but output {outputs[0]} is no map: a classifier's "
        text += "is network-type=1"
        yield Finding("type-and-outputs", "warning", text, cfg.where("network_type"))
    if (
        cfg.network_type is NetworkType.OTHER
        and outputs
        and not cfg.output_tensor_meta
        and cfg.output_image == "none"
    ):
        text = "network-type=100 without output-tensor-meta=1: nobody reads the outputs, nothing is"
        text += " found"
        yield Finding("outputs-unread", "warning", text, cfg.where("network_type"))


def weight_checks(checked: CheckedConfig) -> Iterator[Finding]:
    """Check that weights are finite, not empty, and within the precision that is asked for."""
    network = checked.network
    if network is None:
        return
    where = str(network.path or checked.cfg.path)
    half = checked.cfg.network_mode is NetworkMode.FP16
    heavy = {
        node.inputs[1].name
        for node in network.model.graph.all_nodes()
        if node.op_type in _WEIGHED and len(node.inputs) > 1 and node.inputs[1] is not None
    }
    left = _MOST_WEIGHTS
    broken, beyond, empty, weighed = [], [], [], 0
    for name, tensor in checked.weights:
        left -= tensor.nbytes
        if left < 0 or str(tensor.dtype) not in ("FLOAT", "FLOAT16", "DOUBLE"):
            continue
        values = tensor.numpy()
        if not values.size:
            continue
        # without a copy: NaN goes through minimum and maximum
        low, high = float(values.min()), float(values.max())
        if not np.isfinite(low) or not np.isfinite(high):
            if values.ndim or np.isnan(low):  # an infinite number alone is a mask or a limit
                broken.append(name)
        elif half and max(-low, high) > _HALF_MAX:
            beyond.append((name, max(-low, high)))
        if name in heavy and values.size >= 16:
            weighed += 1
            if low == high == 0:
                empty.append(name)
    if broken:
        text = f"{len(broken)} weight(s) hold NaN or infinity, the first in {broken[0]!r}: what "
        text += "the model computes is worth nothing"
        yield Finding("weights-not-finite", "warning", text, where)
    if beyond:
        name, most = beyond[0]
        text = f"network-mode=2 (FP16): weight {name!r} reaches {most:.4g}, FP16 ends at 65504"
        yield Finding("weights-beyond-fp16", "warning", text, checked.cfg.where("network_mode"))
    if empty and len(empty) >= max(1, weighed // 2):
        text = f"{len(empty)} of {weighed} layers have nothing but zeros as weights, the first is "
        text += f"{empty[0]!r}: was the model trained and exported whole?"
        yield Finding("weights-zero", "warning", text, where)


def _attributes(checked: CheckedConfig) -> Iterator[Finding]:
    """Report attributes of plugin nodes that the plugin's creator has no fields for."""
    network = checked.network
    if network is None or not network.unknown_operators():
        return
    for node in unknown_nodes(network):
        creator = creator_of(node, known_plugins())
        if creator is None or node.name in network.plugins:
            continue
        where = f"{network.path or checked.cfg.path}, node {node.name!r}"
        if (finding := attributes_left_out(node, creator, where)) is not None:
            yield finding


def _precision(checked: CheckedConfig) -> Iterator[Finding]:
    cfg = checked.cfg
    try:
        decision = ConfigPrecision(cfg).decide(DEFAULT_BACKEND)
    except HeadraceError as error:
        checked.problems.append(error)
        return
    yield from decision.notices
    if decision.rules.table is not None:
        yield from _table(checked, decision.rules.table)
    if cfg.layer_device_precision and checked.network is not None:
        known = {node.name for node in checked.network.model.graph.all_nodes()}
        known |= {v.name for n in checked.network.model.graph.all_nodes() for v in n.outputs}
        layers = [item.strip().rsplit(":", 2)[0] for item in cfg.layer_device_precision]
        if unknown := [name for name in layers if name not in known]:
            text = f"layer-device-precision names {unknown[0]!r}, and the model has no such layer"
            yield Finding("layer-precision", "warning", text, cfg.where("layer_device_precision"))


def _table(checked: CheckedConfig, table: CalibrationTable) -> Iterator[Finding]:
    """A table belongs to a model: it has the names of its tensors."""
    network = checked.network
    if network is None:
        return
    names = {value.name for value in network.model.graph.inputs}
    names |= {v.name for node in network.model.graph.all_nodes() for v in node.outputs}
    # TensorRT writes layers that it made itself, too
    known = [name for name in table.scales if name in names]
    if len(known) * 4 < min(len(table.scales), len(names)):
        text = f"{len(known)} of the {len(table.scales)} tensors of {_named(checked.cfg)} are in "
        text += "the model: the table is that of another one"
        yield Finding("table-of-other-model", "warning", text, checked.cfg.where("int8_calib_file"))


def _named(cfg: ModelConfig) -> str:
    path = cfg.int8_calib_file
    return "int8-calib-file" if path is None else f"{path.name} (int8-calib-file)"
