"""What user code was called with beside its arrays: one class per kind of call, as cases keep it.

Each writes itself as entries of `case.json`, and files beside it; and reads itself from there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from noria._core.notices import Notice
from noria.binary.regular_files import open_regular
from noria.custom.guard.call_json import (
    Params,
    ParserKind,
    network_from,
    network_json,
    params_from,
    params_json,
)
from noria.meta import NetworkInfo

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig
    from noria.engine.plugin_graph.plugin_record import PluginRecord

CaseKind = ParserKind | Literal["inputs", "load", "network", "build", "plugin"]
CONFIG = "config.txt"
MAX_CONFIG = 4 << 20
MAX_COPIES = 64 << 20  # bytes of a model's files; larger ones stay where they are
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ParserGiven:
    """A call of a parser."""

    network: NetworkInfo
    params: Params

    def write(self, folder: Path) -> dict[str, Any]:
        """Entries of `case.json`."""
        return {"network": network_json(self.network), "params": params_json(self.params)}


@dataclass(frozen=True, slots=True)
class InputsGiven:
    """A call of `NvDsInferInitializeInputLayers`."""

    network: NetworkInfo
    max_batch: int

    def write(self, folder: Path) -> dict[str, Any]:
        """Entries of `case.json`."""
        return {"network": network_json(self.network), "max-batch": self.max_batch}


@dataclass(frozen=True, slots=True)
class LoadGiven:
    """Loading a library.

    Attributes:
        config: of the model, if networks and plugins of the library are asked for.
        notices: what became of the files that the config names.
    """

    config: ModelConfig | None = None
    notices: tuple[Notice, ...] = field(default=(), kw_only=True, compare=False)

    def write(self, folder: Path) -> dict[str, Any]:
        """Entries of `case.json`; the config is a file.

        Raises:
            ConfigError: it cannot be written.
            OSError: the file cannot.
        """
        if self.config is None:
            return {"config": False}
        from noria.config.model_files import darknet_cfg

        cfg = self.config
        if cfg.custom_network_config:  # it may be relative to the config
            cfg = cfg.with_overrides(custom_network_config=str(darknet_cfg(cfg)))
        (folder / CONFIG).write_text(cfg.dump())
        return {"config": True}


@dataclass(frozen=True, slots=True)
class NetworkGiven(LoadGiven):
    """A call of a function that makes a network; the model files that it may read are kept, too."""

    function: str = ""

    def write(self, folder: Path) -> dict[str, Any]:
        """See `LoadGiven`."""
        entries = LoadGiven.write(self, folder) | {"made-by": self.function}
        if self.function and self.config is not None:
            entries["files"] = _keep_files(self.config, folder)
        return entries


@dataclass(frozen=True, slots=True)
class BuildGiven(NetworkGiven):
    """Building the plugins of a network; `function` makes that, or is empty.

    Attributes:
        request: for `engine_operations.build_layers`.
    """

    request: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> dict[str, Any]:
        """See `LoadGiven`."""
        return NetworkGiven.write(self, folder) | {"request": dict(self.request)}


@dataclass(frozen=True, slots=True)
class PluginGiven(LoadGiven):
    """Loading a plugin layer of a plan, and calling it.

    Attributes:
        record: of the plan.
        place: what the plan is called.
        inputs: how many arrays behind the plugin's blobs are inputs, the rest being shape inputs;
            None: it did not come to a call.
    """

    record: PluginRecord | None = None
    place: str = ""
    inputs: int | None = None

    def write(self, folder: Path) -> dict[str, Any]:
        """See `LoadGiven`."""
        assert self.record is not None
        record = json.loads(self.record.model_dump_json())
        more = {"record": record, "place": self.place, "inputs": self.inputs}
        return LoadGiven.write(self, folder) | more


Given = ParserGiven | InputsGiven | LoadGiven


def given_from(kind: CaseKind, said: dict[str, Any], sizes: Sequence[int], folder: Path) -> Given:
    """What `write` made entries of.

    Args:
        said: all of `case.json`.
        sizes: bytes of the arrays of the case.

    Raises:
        ValueError, TypeError, KeyError, OSError, NoriaError: it is damaged.
    """
    if kind in ("bbox", "instance", "classifier", "segmentation"):
        return ParserGiven(network_from(said["network"]), params_from(kind, said["params"]))
    if kind == "inputs":
        return InputsGiven(network_from(said["network"]), _count(said["max-batch"], 1))
    config = _config(folder) if _flag(said["config"]) else None
    if kind == "load":
        return LoadGiven(config)
    if config is None:
        raise ValueError("it has no config")
    if kind == "plugin":
        from noria.engine.plugin_graph.plugin_record import PluginRecord

        record = PluginRecord.model_validate_json(json.dumps(said["record"]))
        inputs = None if said["inputs"] is None else _count(said["inputs"], 0)
        arrays = len(sizes) - len(record.blobs)
        if arrays < (inputs or 0) or (inputs is None and arrays):
            raise ValueError(f"its plugin has {len(sizes)} arrays")
        return PluginGiven(config, record=record, place=plain_text(said["place"]), inputs=inputs)
    function = plain_text(said["made-by"])
    config, notices = _with_files(config, said.get("files", []), folder)
    if kind == "network":
        return NetworkGiven(config, function, notices=notices)
    if len(sizes) != 1:
        raise ValueError(f"its network is {len(sizes)} arrays")
    return BuildGiven(config, function, _request(said["request"]), notices=notices)


def _config(folder: Path) -> ModelConfig:
    from noria.config.model_config import ModelConfig

    with open_regular(folder / CONFIG, MAX_CONFIG):
        pass
    return ModelConfig.load(folder / CONFIG)


def _keep_files(cfg: ModelConfig, folder: Path) -> list[dict[str, Any]]:
    """Copy the files of a model; hashes alone of those that are too large together."""
    from noria.model.init_params import model_files

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
    cfg: ModelConfig, entries: list[dict[str, Any]], folder: Path
) -> tuple[ModelConfig, tuple[Notice, ...]]:
    """The config, naming the files as they were: copies of those that are not the same any more."""
    from noria.model.init_params import MODEL_FILES, model_files

    notices = []
    there = model_files(cfg)
    for number, entry in enumerate(entries):
        key, wanted = plain_text(entry["key"]), plain_text(entry["sha256"])
        name = Path(plain_text(entry["name"])).name
        fields = key.replace("-", "_")
        if fields not in MODEL_FILES or not getattr(cfg, fields):
            raise ValueError(f"its config names no {key}")
        if not _SHA256.fullmatch(wanted):
            raise ValueError(f"{wanted!r} is no hash")
        path = there.get(key)
        if path is not None and _hash(path) == wanted:
            continue
        gone = "is not there any more" if path is None else "is not what it was"
        if _flag(entry["kept"]):
            copy = _copy(folder, number, name)
            if _hash(copy, MAX_COPIES) != wanted:
                raise ValueError(f"{copy.parent.name}/{name} is not what it was")
            cfg = cfg.with_overrides(**{fields: os.path.abspath(copy)})
            gone += ": the copy that was saved is taken"
        notices.append(Notice("warning", f"{key} {gone}", str(path or getattr(cfg, fields))))
    return cfg, tuple(notices)


def _copy(folder: Path, number: int, name: str) -> Path:
    """Under its own name: libraries look at that."""
    return folder / f"file_{number}" / name


def _hash(path: Path, limit: int | None = None) -> str:
    with open_regular(path, limit) as file:
        return file_digest(file, "sha256").hexdigest()


def _request(given: Any) -> dict[str, Any]:
    from noria.model.guarded_request import BuildRequest

    return BuildRequest.model_validate_json(json.dumps(given)).model_dump()


def _count(given: Any, least: int) -> int:
    if type(given) is not int or not least <= given < 1 << 20:
        raise ValueError(f"{given!r} is no such number")
    return given


def _flag(given: Any) -> bool:
    if type(given) is not bool:
        raise ValueError(f"{given!r} is neither true nor false")
    return given


def plain_text(given: Any) -> str:
    """A name or path as it was written.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(given, str) or len(given) > 4096 or "\0" in given:
        raise ValueError(f"{str(given)[:40]!r} is no name")
    return given
