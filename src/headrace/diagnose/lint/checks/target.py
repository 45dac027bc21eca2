"""Checks for one generation of the original: keys, models and libraries that it takes otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace._core.findings import Finding, Level
from headrace.binary.abi import static_evidence
from headrace.binary.elf import ElfError, ElfFile
from headrace.config.enums import PARSER_FIELDS, NetworkMode, ProcessMode
from headrace.config.keys import PROPERTY_KEYS
from headrace.config.model_files import model_kind, model_paths
from headrace.diagnose.lint.targets import Target, ended, known_since
from headrace.engine.plan import is_plan_file
from headrace.infer.model.engine_files import engine_path
from headrace.infer.model.precision import MODES
from headrace.infer.parsers import BuiltinParser
from headrace.plugins.loading import PYTHON_SUFFIXES

if TYPE_CHECKING:
    from headrace.diagnose.lint.subject import CheckedConfig

_FLOOR = 16  # pixels of an object, up to 6.3


def target_checks(checked: CheckedConfig, target: Target) -> Iterator[Finding]:
    """Check a config for a generation."""
    yield from _keys(checked, target)
    yield from _model(checked, target)
    yield from _precision(checked, target)
    yield from _parser(checked, target)
    yield from _start(checked, target)


def _of(
    checked: CheckedConfig, field: str, code: str, text: str, level: Level = "warning"
) -> Finding:
    return Finding(code, level, text, checked.cfg.where(field))


def _keys(checked: CheckedConfig, target: Target) -> Iterator[Finding]:
    cfg = checked.cfg
    for key in PROPERTY_KEYS.values():
        field = key.field
        if field is None or not cfg.is_set(field) or cfg.origin(field).kind != "file":
            continue
        known = known_since(key.since, target)
        if key.extension:
            text = f"{key.name} is a key of Headrace: {target.shown} does not know it"
            yield _of(checked, field, "target-headrace-only", text)
        elif known is False:
            text = f"{target.shown} does not know {key.name}, which came with {key.since}"
            yield _of(checked, field, "target-key-unknown", text)
        elif known is None:
            text = f"{key.name} came with one of {key.since.replace('..', ' to ')}: "
            text += f"{target.shown} may not know it"
            yield _of(checked, field, "target-key-unknown", text, "info")
        elif ended(key.until, target) and model_kind(cfg) in (None, "onnx"):
            text = f"{key.name} has had no effect since {key.until}"
            yield _of(checked, field, "target-key-ended", text)


def _model(checked: CheckedConfig, target: Target) -> Iterator[Finding]:
    cfg, kind = checked.cfg, model_kind(checked.cfg)
    if kind in ("caffe", "uff"):
        field = "model_file" if kind == "caffe" else "uff_file"
        if not target.caffe:
            text = f"{target.shown} reads no {kind.upper() if kind == 'uff' else 'Caffe'} models: "
            text += "it finds no model; export it to ONNX"
            yield _of(checked, field, "target-model-format", text)
        elif target.version >= (7, 0):
            text = "Caffe and UFF models end with 7.0: 7.1 reads neither"
            yield _of(checked, field, "target-model-format", text, "info")
    network = checked.network
    if kind == "onnx" and network is not None:
        opset = network.model.opset_imports.get("", 0)
        if opset > target.opset:
            text = f"the model has opset {opset}; TensorRT {target.tensorrt} of {target.shown} "
            text += f"reads up to {target.opset}"
            yield _of(checked, "onnx_file", "target-opset", text)
    engine = cfg.model_engine_file
    if engine is not None and engine.is_file() and is_plan_file(engine):
        text = "the engine is one of Headrace: the original builds its own in its place"
        yield _of(checked, "model_engine_file", "target-engine", text, "info")
    yield from _engine_name(checked, target)


def _engine_name(checked: CheckedConfig, target: Target) -> Iterator[Finding]:
    """A missing engine under a name that the original does not save. Source: config facts 5.2."""
    cfg, engine = checked.cfg, checked.cfg.model_engine_file
    custom_model = checked.dry.maker is not None or model_kind(cfg) not in ("onnx", "caffe", "uff")
    if custom_model or engine is None or engine.exists():
        return
    model = next(iter(model_paths(cfg).values())).resolve()
    mode = cfg.network_mode
    if mode in (NetworkMode.INT8, NetworkMode.BEST) and cfg.int8_calib_file is None:
        mode = NetworkMode.FP16
    saved = engine_path(model, cfg.batch_size, cfg.gpu_id, MODES[mode])
    if cfg.enable_dla:
        saved = saved.with_name(
            saved.name.replace(f"_gpu{cfg.gpu_id}_", f"_dla{cfg.use_dla_core}_")
        )
    if engine.resolve() != saved:
        name = saved.name if engine.name != saved.name else str(saved)
        text = f"there is no {engine.name}, and {target.shown} saves the engine that it builds as "
        text += f"{name}: it builds one at every start"
        yield _of(checked, "model_engine_file", "target-engine-name", text)


def _precision(checked: CheckedConfig, target: Target) -> Iterator[Finding]:
    cfg = checked.cfg
    if cfg.network_mode is NetworkMode.BEST and target.version < (7, 0):
        text = f"network-mode=3 is not known to {target.shown}, which refuses to start"
        yield _of(checked, "network_mode", "target-network-mode", text)
    path = cfg.int8_calib_file
    if (
        path is None
        or not path.is_file()
        or cfg.network_mode in (NetworkMode.FP32, NetworkMode.FP16)
    ):
        return
    with path.open("rb") as file:
        header = file.readline(200).decode("utf-8", "replace")
    digits = header.partition("-")[2].partition("-")[0]
    if digits.isdecimal():
        major = int(digits) // (10_000 if len(digits) > 5 else 1_000)
        if major != target.tensorrt:
            text = f"the calibration table is of TensorRT {major}, and {target.shown} has TensorRT "
            text += f"{target.tensorrt}: it does not take it"
            yield _of(checked, "int8_calib_file", "target-table", text)


def _parser(checked: CheckedConfig, target: Target) -> Iterator[Finding]:
    cfg, choice = checked.cfg, checked.dry.choice
    path = cfg.custom_lib_path
    if path is not None and path.suffix.lower() in PYTHON_SUFFIXES:
        text = f"{target.shown} loads no Python: it needs a library in C++"
        yield _of(checked, "custom_lib_path", "target-headrace-only", text)
    elif path is None and choice is not None and isinstance(choice.parser, BuiltinParser):
        name = choice.parser.head.name
        field = next((f for f in PARSER_FIELDS.values() if getattr(cfg, f) == name), None)
        if field is not None:
            text = (
                f"{name} is Headrace's own: {target.shown} needs custom-lib-path with such a parser"
            )
            yield _of(checked, field, "target-headrace-only", text)
    elif path is not None and path.is_file():
        yield from _boxes(checked, target)


def _boxes(checked: CheckedConfig, target: Target) -> Iterator[Finding]:
    path = checked.cfg.custom_lib_path
    assert path is not None
    try:
        evidence = static_evidence(ElfFile.read(path))
    except (ElfError, OSError):
        return  # its own finding
    size = evidence.layout
    if size is not None and size != target.box_bytes:
        text = f"the library was compiled for boxes of {size} bytes, {target.shown} has "
        text += f"{target.box_bytes}: compile it with its headers"
        yield _of(checked, "custom_lib_path", "target-box-layout", text)


def _start(checked: CheckedConfig, target: Target) -> Iterator[Finding]:
    cfg = checked.cfg
    if cfg.gie_unique_id is None:
        text = f"gie-unique-id is absent: {target.shown} refuses to start without it, unless the "
        text += "element's property unique-id is set"
        yield _of(checked, "gie_unique_id", "target-unique-id", text)
    secondary = cfg.process_mode is ProcessMode.SECONDARY
    sizes = (cfg.input_object_min_width, cfg.input_object_min_height)
    if secondary and target.version < (6, 4) and min(sizes) < _FLOOR:
        text = f"{target.shown} infers on no object below {_FLOOR} pixels, whatever "
        text += "input-object-min-width and input-object-min-height say"
        yield _of(checked, "input_object_min_width", "target-object-size", text, "info")
