"""Recognitions that are kept beside a bare model, so that its next run recognises nothing.

`<model>_recognised.json` lies where the model's engines lie. An entry answers for the model of its
hash, the same files beside it, the same keys of the command line and the same code; where anything
differs, the model is recognised anew. Values are checked as those of a program are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

import headrace
from headrace._core.errors import ConfigError, ModelError
from headrace._core.files import hash_file, sha256_of, write_atomically
from headrace._core.findings import Finding
from headrace._core.formats.archives import model_file
from headrace._core.json_record import JsonRecord, RecordError
from headrace.binary.regular_files import open_regular
from headrace.config import ModelConfig
from headrace.config.frozen import plain
from headrace.config.overrides import Overrides
from headrace.engine.fingerprint import fingerprint_files, what_changed
from headrace.engine.plan_header import ModelRecord
from headrace.infer.recognise.fields import fields_of, origins_of
from headrace.infer.recognise.sidecars import files_beside

KEPT_FIELDS = frozenset({
    "all_classes", "centre_crop", "classifier_type", "cluster_mode", "gie_unique_id", "infer_dims",
    "maintain_aspect_ratio", "model_color_format", "net_scale_factor", "network_input_order",
    "network_type", "num_detected_classes", "offsets", "output_image", "output_instance_mask",
    "output_tensor_meta", "parse_bbox_func_name", "parse_bbox_instance_mask_func_name",
    "parse_classifier_func_name", "parse_segmentation_func_name", "process_mode", "profile",
    "rotated_boxes", "scaling_filter", "segmentation_output_order", "segmentation_threshold",
    "symmetric_padding",
})  # fmt: skip
"""Fields that a file beside a model may set: none names a file or a library."""

_MOST = 8  # entries of a file: other keys of the command line
_MAX_BYTES = 1 << 22
_ROOMS = (Path(__file__).parent, Path(__file__).parent.with_name("parsers"))  # they decide


class _Entry(JsonRecord, frozen=True):
    """One recognition: `question` is all that it depends on beside the model's own files."""

    question: str
    model: ModelRecord
    values: dict[str, Any]
    reasons: dict[str, str | None]
    labels: tuple[tuple[str, ...], ...]
    notices: tuple[Finding, ...]


class _Kept(JsonRecord, frozen=True):
    entries: Annotated[tuple[_Entry, ...], Meta(max_length=_MOST)]


def load_bare_model(path: str | Path, overrides: Overrides) -> ModelConfig:
    """The config of a bare model, as `ModelConfig.load` gives it.

    Args:
        path: a model file, or an archive with one.
        overrides: keys of the command line; what they decide is not looked for.

    Raises:
        ModelError: see `headrace.infer.recognise.recognise.recognise`.
        ConfigError: a key is refused.
    """
    path = model_file(Path(path))
    own = fields_of(overrides)
    question = _question(path, overrides, own)
    entries = _read(path)
    for entry in entries:
        if entry.question == question and what_changed(entry.model, path) is None:
            with suppress(ConfigError, KeyError):
                return overrides.on(_config_of(entry, path, own))
    from headrace.infer.recognise.recognise import recognise

    recognition = recognise(path, own, overrides)
    with suppress(ModelError):
        network = recognition.evidence.network
        model = fingerprint_files(path, network.external_locations, sha256=network.sha256)
        latest = _entry_of(recognition.config, question, model, own)
        if latest is not None:
            others = [e for e in entries if e.question != question and e.model == model]
            _write(path, [latest, *others][:_MOST])
    return overrides.on(recognition.config)


def kept_path(model: Path) -> Path:
    """Name the file of a model's recognitions, beside it as its engines are."""
    return model.with_name(f"{model.name}_recognised.json")


def _question(path: Path, overrides: Overrides, own: Mapping[str, Any]) -> str:
    """All that a recognition depends on beside the model's files, as a hash."""
    files = [*files_beside(path), *(value for value in own.values() if isinstance(value, Path))]
    lines = [x[:3] for x in overrides.lines if x.group == "property"]
    parts = [headrace.__version__, _state_of_code(), lines, [_content(file) for file in files]]
    return sha256_of(json.dumps(parts, default=str).encode())


def _content(file: Path) -> tuple[str, str]:
    try:
        return str(file), hash_file(file).sha256 if file.is_file() else ""
    except OSError:
        return str(file), "unreadable"


def _state_of_code() -> list[tuple[str, int, int]]:
    """Sizes and times of the files that decide: in a checkout they change between versions."""
    files = []
    with suppress(OSError):
        for room in _ROOMS:
            for item in os.scandir(room):
                if item.name.endswith(".py"):
                    state = item.stat()
                    files.append((item.name, state.st_size, state.st_mtime_ns))
    return sorted(files)


def _read(path: Path) -> tuple[_Entry, ...]:
    try:
        with open_regular(kept_path(path), _MAX_BYTES) as file:
            return _Kept.from_json(file.read()).entries
    except (OSError, ValueError):  # RecordError is one
        return ()


def _write(path: Path, entries: Sequence[_Entry]) -> None:
    """Write them whole or not at all; where the folder refuses, it is recognised again."""
    with suppress(OSError):
        write_atomically(kept_path(path), [_Kept(tuple(entries)).to_json()], durable=False)


def _entry_of(
    cfg: ModelConfig, question: str, model: ModelRecord, own: Mapping[str, Any]
) -> _Entry | None:
    """The entry of a recognised config; None where reading it would not give the same config."""
    path = cfg.path
    names = [n for n in cfg.FIELDS if cfg.is_set(n) and n not in own and n != "onnx_file"]
    told = [n for n in cfg.read_notices if n.code != "engine-built"]  # that was of this run
    if not KEPT_FIELDS.issuperset(names) or any(n.where != str(path) for n in told):
        return None
    try:
        entry = _Entry(
            question,
            model,
            {name: msgspec.to_builtins(plain(getattr(cfg, name))) for name in names},
            {name: cfg.origin(name).text for name in ("onnx_file", *names)},
            cfg.labels,
            tuple(replace(n, where=None) for n in told),
        ).checked()
        same = _config_of(entry, path, own)
    except (TypeError, ConfigError, RecordError):
        return None
    if (same.values(), same.labels) != (cfg.values(), cfg.labels) or [*same.read_notices] != told:
        return None
    return entry


def _config_of(entry: _Entry, path: Path, own: Mapping[str, Any]) -> ModelConfig:
    """Make the config of an entry.

    Raises:
        ConfigError: a value is refused.
        KeyError: it sets a field that no entry may set.
    """
    if refused := entry.values.keys() - KEPT_FIELDS:
        raise KeyError(*refused)
    values = {"onnx_file": path.absolute(), **entry.values, **own}
    notices = [replace(n, where=str(path)) for n in entry.notices]
    draft = ModelConfig().changed(values, origins_of(entry.reasons, values, own), notices)
    return draft.of_model(path, entry.labels)
