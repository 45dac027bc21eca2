"""Saved calls of functions that make networks and plugins: arguments, as cases keep them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from msgspec import field as msgspec_field

from headrace._core.files import hash_file
from headrace._core.findings import Finding
from headrace._core.json_record import JsonRecord
from headrace.binary.regular_files import open_regular
from headrace.custom.guard import call_args, repro
from headrace.custom.guard.call_args import (
    CallArgs,
    LoadArgs,
    plain_count,
    plain_flag,
    plain_text,
    read_config,
)
from headrace.infer.model.init_params import MODEL_FILES, model_files

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.config.model_config import ModelConfig
    from headrace.engine.plugin_graph.plugin_record import PluginRecord

MAX_COPIES = 64 << 20  # bytes of a model's files; larger ones stay where they are
_SHA256 = re.compile("[0-9a-f]{64}")


_Text = Annotated[str, Meta(max_length=4096)]
_Axis = Annotated[int, Meta(ge=-(2**40), lt=2**40)]
_Axes = Annotated[tuple[_Axis, ...], Meta(max_length=64)]
_Free = Annotated[tuple[_Axis | _Text | None, ...], Meta(max_length=64)]
_Type = Annotated[str, Meta(pattern=r"^[<>|=][biufV][0-9]{1,2}\Z")]

_Scales = Annotated[dict[_Text, float], Meta(max_length=1 << 16)]


class BuildRequest(JsonRecord, frozen=True, kw_only=True):
    """Schema of a saved "build plugins" request, without the number of the network.

    The file is untrusted, so every field is bounded.
    """

    inputs: Annotated[tuple[tuple[_Text, _Type, _Free], ...], Meta(max_length=4096)]
    max_batch: Annotated[int, Meta(ge=1, lt=2**20)]
    batched: bool
    profiles: Annotated[tuple[dict[_Text, tuple[_Axes, _Axes, _Axes]], ...], Meta(max_length=64)]
    scales: _Scales = msgspec_field(default_factory=dict)
    where: _Text


@dataclass(frozen=True, slots=True)
class NetworkArgs(LoadArgs):
    """Arguments of a function that makes a network; model files that it may read are kept, too."""

    function: str = ""

    def write(self, folder: Path) -> dict[str, Any]:
        """See `LoadArgs`."""
        entries = LoadArgs.write(self, folder) | {"made-by": self.function}
        if self.function and self.config is not None:
            entries["files"] = _keep_files(self.config, folder)
        return entries


@dataclass(frozen=True, slots=True)
class BuildArgs(NetworkArgs):
    """Arguments of building the plugins of a network; `function` makes that, or is empty.

    Attributes:
        request: for `guarded_operations.build_layers`.
    """

    request: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> dict[str, Any]:
        """See `LoadArgs`."""
        return NetworkArgs.write(self, folder) | {"request": dict(self.request)}


@dataclass(frozen=True, slots=True)
class PluginArgs(LoadArgs):
    """Arguments of loading a plugin layer of a plan, and of calling it.

    Attributes:
        record: of the plan.
        place: the plan, as errors name it.
        inputs: how many arrays behind the plugin's blobs are inputs, the rest being shape inputs;
            None: it did not come to a call.
    """

    record: PluginRecord | None = None
    place: str = ""
    inputs: int | None = None

    def write(self, folder: Path) -> dict[str, Any]:
        """See `LoadArgs`."""
        assert self.record is not None
        more = {"record": self.record.to_dict(), "place": self.place, "inputs": self.inputs}
        return LoadArgs.write(self, folder) | more


def load_case(folder: Path) -> tuple[repro.Case, dict[str, Array], dict[str, Any]]:
    """Load a case of any kind: see `headrace.custom.guard.repro.load_case`."""
    return repro.load_case(folder, ARGS_READERS)


def _plugin_args(entries: dict[str, object], sizes: Sequence[int], folder: Path) -> CallArgs:
    from headrace.engine.plugin_graph.plugin_record import PluginRecord

    config = _config(entries, folder)
    record = PluginRecord.from_dict(entries["record"])
    inputs = None if entries["inputs"] is None else plain_count(entries["inputs"], 0)
    arrays = len(sizes) - len(record.blobs)
    if arrays < (inputs or 0) or (inputs is None and arrays):
        raise ValueError(f"its plugin has {len(sizes)} arrays")
    return PluginArgs(config, record=record, place=plain_text(entries["place"]), inputs=inputs)


def _network_args(entries: dict[str, Any], sizes: Sequence[int], folder: Path) -> NetworkArgs:
    config = _config(entries, folder)
    function = plain_text(entries["made-by"])
    config, notices = _with_files(config, entries.get("files", []), folder)
    return NetworkArgs(config, function, notices=notices)


def _build_args(entries: dict[str, object], sizes: Sequence[int], folder: Path) -> CallArgs:
    network = _network_args(entries, sizes, folder)
    if len(sizes) != 1:
        raise ValueError(f"its network is {len(sizes)} arrays")
    request = BuildRequest.from_dict(entries["request"]).to_dict()
    return BuildArgs(network.config, network.function, request, notices=network.notices)


ARGS_READERS = {
    **call_args.ARGS_READERS,
    "network": _network_args,
    "build": _build_args,
    "plugin": _plugin_args,
}
"""Kind of call -> reader of its arguments, of all kinds."""


def _config(entries: dict[str, object], folder: Path) -> ModelConfig:
    if not plain_flag(entries["config"]):
        raise ValueError("it has no config")
    return read_config(folder)


def _keep_files(cfg: ModelConfig, folder: Path) -> list[dict[str, Any]]:
    """Copy the files of a model; hashes alone of those that are too large together."""
    entries = []
    files = model_files(cfg)
    kept = sum(path.stat().st_size for path in files.values()) <= MAX_COPIES
    for number, (key, path) in enumerate(files.items()):
        if kept:
            _copy(folder, number, path.name).parent.mkdir()
            shutil.copyfile(path, _copy(folder, number, path.name))
        entries.append({"key": key, "name": path.name, "sha256": _hash(path), "kept": kept})
    return entries


def _with_files(
    cfg: ModelConfig, entries: list[dict[str, object]], folder: Path
) -> tuple[ModelConfig, tuple[Finding, ...]]:
    """Return the config with the files as they were: copies of those that changed since."""
    notices = []
    there = model_files(cfg)
    for number, entry in enumerate(entries):
        key, digest = plain_text(entry["key"]), plain_text(entry["sha256"])
        name = Path(plain_text(entry["name"])).name
        fields = key.replace("-", "_")
        if fields not in MODEL_FILES or not getattr(cfg, fields):
            raise ValueError(f"its config names no {key}")
        if not _SHA256.fullmatch(digest):
            raise ValueError(f"{digest!r} is no hash")
        path = there.get(key)
        if path is not None and _hash(path) == digest:
            continue
        gone = "is not there any more" if path is None else "is not what it was"
        if plain_flag(entry["kept"]):
            copy = _copy(folder, number, name)
            if _hash(copy, MAX_COPIES) != digest:
                raise ValueError(f"{copy.parent.name}/{name} is not what it was")
            cfg = cfg.with_overrides(**{fields: os.path.abspath(copy)})
            gone += ": the copy that was saved is taken"
        notices.append(
            Finding("case-file", "warning", f"{key} {gone}", str(path or getattr(cfg, fields)))
        )
    return cfg, tuple(notices)


def _copy(folder: Path, number: int, name: str) -> Path:
    """Return the place of a copy; it keeps its name: libraries look at that."""
    return folder / f"file_{number}" / name


def _hash(path: Path, limit: int | None = None) -> str:
    with open_regular(path, limit) as file:
        return hash_file(file).sha256
