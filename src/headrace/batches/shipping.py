"""Configs, models, labels and libraries on their way to other machines, named by their content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headrace._core.errors import ConfigError
from headrace._core.files import hash_file, locked, sha256_of, write_atomically
from headrace.batches.identity import config_files
from headrace.batches.work import Work
from headrace.config import ModelConfig
from headrace.config.pipeline_spec import ModelSpec

_HERE = "/@headrace-batch@/"
"""Stands in shipped configs for the folder of the machine that reads them."""
_EXTERNAL = "onnx_file_data_"


@dataclass(frozen=True, slots=True)
class Shipment:
    """Everything that a machine needs to open the models of a batch.

    Attributes:
        work: the pipeline; its configs are named, not placed.
        configs: file name and text of each config, every key of the command line in it.
        files: place below the folder, `HASH/NAME` -> file of this machine.
        tracker: place of the tracker's file; None without one.
    """

    work: Work
    configs: tuple[tuple[str, str], ...]
    files: Mapping[str, Path]
    tracker: str | None = None


def packed_work(work: Work, configs: Sequence[ModelConfig]) -> Shipment:
    """Pack the files that configs name.

    Args:
        work: the pipeline.
        configs: its loaded configs, numbered.

    Raises:
        ConfigError: a config cannot be written as text.
        OSError: a file cannot be read.
    """
    files: dict[str, Path] = {}
    texts: list[tuple[str, str]] = []
    for cfg in configs:
        named = config_files(cfg)
        locations = {
            field: f"{hash_file(path).sha256}/{path.name}" for field, path in named.items()
        }
        home = locations.get("onnx_file", "").partition("/")[0]
        for field, path in named.items():
            if field.startswith(_EXTERNAL):  # it belongs beside its model
                locations[field] = f"{home}/{path.name}"
            files[locations[field]] = path
        changes = {f: Path(_HERE + p) for f, p in locations.items() if not f.startswith(_EXTERNAL)}
        if cfg.model_engine_file is not None:
            changes["model_engine_file"] = Path(f"{_HERE}engines/{cfg.model_engine_file.name}")
        texts.append(_text(cfg.with_overrides(**changes), cfg.path))
    tracker = None if work.spec.tracker is None else work.spec.tracker.config
    tracker_location = None
    if tracker is not None:
        tracker_location = f"{hash_file(tracker).sha256}/{tracker.name}"
        files[tracker_location] = tracker
    return Shipment(work, tuple(texts), files, tracker_location)


def _text(cfg: ModelConfig, path: Path) -> tuple[str, str]:
    try:
        return f"{path.stem}.txt", cfg.dump("ini")
    except ConfigError:  # INI percentages have no fraction
        return f"{path.stem}.yml", cfg.dump("yaml")


def unpacked_work(shipment: Shipment, folder: Path, read: Callable[[str], bytes]) -> Work:
    """Put the files of a shipment into a folder of this machine, those that are not there yet.

    Processes of one machine share the folder, and the engines that are built in it.

    Args:
        shipment: what came.
        folder: for shipments of this user; it is made.
        read: the content of a place.

    Raises:
        OSError: the folder cannot be written.
    """
    for location in shipment.files:
        target = folder / location
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target):
            if not target.exists():
                write_atomically(target, [read(location)])
    (folder / "engines").mkdir(exist_ok=True)
    models: list[ModelSpec] = []
    for name, text in shipment.configs:
        text = text.replace(_HERE, f"{folder}/")
        digest = sha256_of(text.encode())
        target = folder / digest / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, [text.encode()])
        models.append(ModelSpec(config=target))
    spec = shipment.work.spec.changed(models=tuple(models))
    if shipment.tracker is not None and spec.tracker is not None:
        spec = spec.changed(tracker=spec.tracker.changed(config=folder / shipment.tracker))
    return replace(shipment.work, spec=spec)
