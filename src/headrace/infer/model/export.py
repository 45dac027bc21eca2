"""A config's model as an ONNX file in another precision."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from headrace._core.errors import EngineError
from headrace._core.files import os_errors, refuse_link, write_atomically
from headrace._core.findings import Finding
from headrace._core.text import counted
from headrace.config.model_files import model_paths
from headrace.engine.input_shapes import complete_infer_dims, resolve_shape
from headrace.engine.layers import layers_of_model
from headrace.engine.onnx_message import model_bytes
from headrace.engine.precision.explicit import (
    Exported,
    ExportPrecision,
    export,
    require_nodes,
    with_outputs,
)
from headrace.engine.precision.prepare import prepare
from headrace.infer.model.image_input import axis_order
from headrace.infer.model.precision import precision_rules
from headrace.infer.model.source import model_source

_FLOATS = ("fp32", "fp16", "bf16")

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig


def export_onnx(
    cfg: ModelConfig, path: str | Path, precision: ExportPrecision, *, keep: Collection[str] = ()
) -> Exported:
    """Write the model of a config as ONNX in a precision, see `export_model` and `write_onnx`."""
    done = export_model(cfg, precision, keep=keep)
    write_onnx(cfg, done, path)
    return done


def export_model(
    cfg: ModelConfig, precision: ExportPrecision, *, keep: Collection[str] = ()
) -> Exported:
    """Write a precision into the graph of a config's model.

    Scales come from the config's `int8-calib-file`. Layers that its `layer-device-precision` pins
    get that precision, those of `keep` FP32; outputs the types of `output-io-formats`.

    Raises:
        ConfigError: a bad item in `layer-device-precision` or `output-io-formats`.
        EngineError: the config names no model; int8 without a usable `int8-calib-file`.
        ModelError: the model cannot be read or written.
    """
    source = model_source(cfg)
    if source is None:
        raise EngineError(
            "the config names no model that can be read",
            where=str(cfg.path),
            expected="onnx-file=<model.onnx>, or the keys of a Caffe, UFF or Darknet model",
        )
    rules, notices = precision_rules(cfg, precision)
    network = source.network()
    if keep:
        require_nodes(prepare(network.to_proto()), keep, str(cfg.path))
    done = export(
        network,
        precision,
        rules.scales,
        keep=(*keep, *rules.keep),
        pins=rules.pins,
        skip_unknown=True,
        tensors=rules.tensors,
    )
    done.notices[:0] = notices
    if rules.outputs:
        done.notices += with_outputs(done, rules.outputs, rules.scales)
    return done


def write_onnx(cfg: ModelConfig, done: Exported, path: str | Path) -> None:
    """Write an exported model; height and width that it leaves free are those of `infer-dims`.

    An ONNX model at `path` is replaced, unless it is the one that the config names.

    Raises:
        EngineError: `infer-dims` contradicts the model; the file cannot be written, or something
            else stands there.
        ModelError: the model is over 2 GiB.
    """
    _check_target(cfg, done, Path(path))
    data = _fixed_bytes(cfg, done)
    done.notices += _read_again(done, data)
    with os_errors(EngineError, "the model cannot be written", path):
        refuse_link(Path(path))
        write_atomically(Path(path), [data])


def _check_target(cfg: ModelConfig, done: Exported, path: Path) -> None:
    """Refuse to replace files that the config is made of, and files that are no ONNX model."""
    if not path.is_file():  # devices, pipes and folders: `write_atomically`
        return
    sources = [*model_paths(cfg).values(), *done.network.external_locations.values()]
    with open(path, "rb") as file:
        head = file.read(1)
    if any(source.exists() and path.samefile(source) for source in sources):
        problem = "is the model itself and is not overwritten"
    elif head not in (b"", b"\x08"):  # ONNX begins with field 1, the version of its format
        problem = "is not an ONNX model and is not overwritten"
    else:
        return
    raise EngineError(problem, where=str(path), fix="choose another name")


def _read_again(done: Exported, data: bytes) -> list[Finding]:
    """Check the precision of each node in the message to be written, by its types alone.

    Raises:
        EngineError: a node that was converted is not in FP16 or BF16 there.
    """
    if done.precision not in ("fp16", "bf16"):
        return []
    layers = {layer.name: layer for layer in layers_of_model(onnx.load_from_string(data))}
    known = [layers[n] for n in done.converted if n in layers and layers[n].precision in _FLOATS]
    wrong = [layer.name for layer in known if layer.precision != done.precision]
    if wrong:
        raise EngineError(
            f"{counted(len(wrong), 'node')} of the written graph compute in "
            f"{layers[wrong[0]].precision.upper()}: {', '.join(wrong[:5])}",
            expected=f"{done.precision.upper()}, as for the other {len(known) - len(wrong)}",
        )
    text = "read again: {nodes} have results in {precision} in the file"
    data_ = {"nodes": counted(len(known), "node"), "precision": done.precision.upper()}
    if others := len(done.converted) - len(known):
        text += ", {others} have results of other types (numbers of elements, comparisons)"
        data_["others"] = str(others)
    where = str(done.network.path.name) if done.network.path else None
    return [Finding("export-checked", "info", text, where, data_)]


def _fixed_bytes(cfg: ModelConfig, done: Exported) -> bytes:
    network = done.network
    dims, where = complete_infer_dims(cfg.infer_dims), str(network.path or cfg.path)
    shape: tuple[int | None, ...] = ()
    if dims is not None and network.inputs:
        shape = resolve_shape(network.inputs[0], dims, axis_order(cfg), where=where)
    return model_bytes(network, shape=shape, where=where, decisions=done.notices)
