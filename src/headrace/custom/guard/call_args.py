"""Arguments of calls of user code, beside arrays: as a worker gets them, and as cases keep them.

There is one class per kind of call. It writes itself as entries of `case.json` and files beside it;
a function of `ARGS_READERS` reads it from there. Calls that make networks and plugins are in
`headrace.infer.model.guarded_cases`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, get_args

import numpy as np

from headrace._core.findings import Finding
from headrace._core.types import Message
from headrace.binary.regular_files import open_regular
from headrace.custom.user_calls import ParserKind
from headrace.meta import ClassifierParams, DetectionParams, NetworkInfo, SegmentationParams

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig

CONFIG = "config.txt"
MAX_CONFIG = 4 << 20
Params = DetectionParams | ClassifierParams | SegmentationParams


def network_json(network: NetworkInfo) -> list[int]:
    """Write width, height, channels."""
    return [network.width, network.height, network.channels]


def network_from(entries: list[int]) -> NetworkInfo:
    """Read the list that `network_json` made."""
    return NetworkInfo(*entries)


def params_json(params: Params) -> Message:
    """Write the parameters as JSON types, floats of float32 unchanged."""
    if isinstance(params, DetectionParams):
        return {
            "num_classes": params.num_classes,
            "pre": params.per_class_threshold.tolist(),
            "post": params.per_class_post_threshold.tolist(),
            "labels": list(params.labels),
        }
    if isinstance(params, ClassifierParams):
        return {"threshold": params.threshold, "labels": [list(r) for r in params.labels]}
    return {
        "num_classes": params.num_classes,
        "threshold": params.threshold,
        "order": params.order,
        "labels": list(params.labels),
    }


def params_from(kind: ParserKind, entries: Message) -> Params:
    """Read the dict that `params_json` made."""
    if kind == "classifier":
        return ClassifierParams(entries["threshold"], entries["labels"])
    if kind == "segmentation":
        return SegmentationParams(
            entries["num_classes"], entries["threshold"], entries["order"], entries["labels"]
        )
    return DetectionParams(
        entries["num_classes"],
        np.array(entries["pre"], np.float32),
        np.array(entries["post"], np.float32),
        entries["labels"],
    )


class CallArgs(Protocol):
    """Arguments of one kind of call."""

    def write(self, folder: Path) -> Message:
        """Return entries of `case.json`; further files are written into the folder."""
        ...


@dataclass(frozen=True, slots=True)
class ParserArgs:
    """Arguments of a call of a parser."""

    network: NetworkInfo
    params: Params

    def write(self, folder: Path) -> Message:
        """Return entries of `case.json`."""
        return {"network": network_json(self.network), "params": params_json(self.params)}


@dataclass(frozen=True, slots=True)
class InputsArgs:
    """Arguments of a call of `NvDsInferInitializeInputLayers`."""

    network: NetworkInfo
    max_batch: int

    def write(self, folder: Path) -> Message:
        """Return entries of `case.json`."""
        return {"network": network_json(self.network), "max-batch": self.max_batch}


@dataclass(frozen=True, slots=True)
class LoadArgs:
    """Arguments of loading a library.

    Attributes:
        config: of the model, if networks and plugins of the library are asked for.
        notices: about files that the config names and that changed since.
    """

    config: ModelConfig | None = None
    notices: tuple[Finding, ...] = field(default=(), kw_only=True, compare=False)

    def write(self, folder: Path) -> Message:
        """Return entries of `case.json`; write the config beside it.

        Raises:
            ConfigError: it cannot be written.
            OSError: the file cannot.
        """
        if self.config is None:
            return {"config": False}
        from headrace.config.model_files import darknet_cfg

        cfg = self.config
        if cfg.custom_network_config:  # it may be relative to the config
            cfg = cfg.with_overrides(custom_network_config=str(darknet_cfg(cfg)))
        (folder / CONFIG).write_text(cfg.dump())
        return {"config": True}


ArgsReader: TypeAlias = "Callable[[Message, Sequence[int], Path], CallArgs]"
"""Reads back arguments: (all of `case.json`, bytes of the arrays, folder of the case) -> them.

Raises ValueError, TypeError, KeyError, OSError or HeadraceError if the case is damaged.
"""


def _parser_args(entries: Message, sizes: Sequence[int], folder: Path) -> CallArgs:
    params = params_from(entries["kind"], entries["params"])
    return ParserArgs(network_from(entries["network"]), params)


def _inputs_args(entries: Message, sizes: Sequence[int], folder: Path) -> CallArgs:
    return InputsArgs(network_from(entries["network"]), plain_count(entries["max-batch"], 1))


def _load_args(entries: dict[str, object], sizes: Sequence[int], folder: Path) -> CallArgs:
    return LoadArgs(read_config(folder) if plain_flag(entries["config"]) else None)


ARGS_READERS: Mapping[str, ArgsReader] = {
    **dict.fromkeys(get_args(ParserKind), _parser_args),
    "inputs": _inputs_args,
    "load": _load_args,
}
"""Kind of call -> reader of its arguments."""


def read_config(folder: Path) -> ModelConfig:
    """Read the config of a case.

    Raises:
        ConfigError: it is damaged.
        OSError: it cannot be read.
        ValueError: it is too large, or no regular file.
    """
    from headrace.config.model_config import ModelConfig

    with open_regular(folder / CONFIG, MAX_CONFIG):
        pass
    return ModelConfig.load(folder / CONFIG)


def plain_count(value: object, least: int) -> int:
    """Return a number of a case.

    Raises:
        ValueError: it is none, or out of range.
    """
    if type(value) is not int or not least <= value < 1 << 20:
        raise ValueError(f"{value!r} is no such number")
    return value


def plain_flag(value: object) -> bool:
    """Return a boolean of a case.

    Raises:
        ValueError: it is none.
    """
    if type(value) is not bool:
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def plain_text(value: object) -> str:
    """Return a name or path of a case.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, str) or len(value) > 4096 or "\0" in value:
        raise ValueError(f"{str(value)[:40]!r} is no name")
    return value
