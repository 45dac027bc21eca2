"""Things that lint looks at: the files given, and all that a dry run finds about each config."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import ConfigError, HeadraceError
from headrace.binary.regular_files import open_regular
from headrace.config.file_kinds import file_kind
from headrace.config.wrong_file import refuse_folder
from headrace.infer.preprocess import Preprocessor
from headrace.infer.recognise.stem import Stem, read_stem

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.diagnose.lint.dry_run import DryRun
    from headrace.network import Network

_SUFFIXES = (".txt", ".yml", ".yaml", ".conf", ".cfg", ".ini")
_MOST_FILES = 10_000
_MOST_READ = 1 << 20
_KEY = re.compile(rb"^[ \t]*(\[|[A-Za-z][\w-]*[ \t]*[=:])", re.MULTILINE)


@dataclass
class CheckedConfig:
    """One model's config with the results of its dry run.

    Attributes:
        cfg: the config.
        dry: the results.
        problems: refusals that further checks came to.
    """

    cfg: ModelConfig
    dry: DryRun
    problems: list[HeadraceError] = field(default_factory=list)

    @property
    def network(self) -> Network | None:
        """The model, if it can be read."""
        return self.dry.network

    @cached_property
    def stem(self) -> Stem | None:
        """The beginning of an ONNX model."""
        network = self.network
        if self.cfg.onnx_file is None or network is None or network.path != self.cfg.onnx_file:
            return None
        return read_stem(self.cfg.onnx_file)

    @cached_property
    def preprocessor(self) -> Preprocessor | None:
        """The scaler, if there is one and its settings are sound; `problems` gets its refusal."""
        image = self.dry.image
        if image is None or self.cfg.input_tensor_from_meta:
            return None
        try:
            return Preprocessor.from_config(self.cfg, image.width, image.height, image.channels)
        except HeadraceError as error:
            self.problems.append(error)
            return None

    @cached_property
    def weights(self) -> list[tuple[str, Any]]:
        """Names and values (onnx-ir tensors) of the model's weights."""
        if self.network is None:
            return []
        values = self.network.model.graph.initializers.values()
        return [(str(v.name), v.const_value) for v in values if v.const_value is not None]


def files_to_check(
    paths: Sequence[Path], refused: Callable[[HeadraceError, Path], None] | None = None
) -> Iterator[Path]:
    """Yield each file once: those given, and the configs and pipeline files of folders.

    Args:
        paths: files and folders.
        refused: gets the error of a folder, and the others go on; None raises it.

    Raises:
        ConfigError: a folder has no config.
        ModelError: a folder is a model that something else runs.
    """
    seen: set[Path] = set()
    for path in paths:
        try:
            files = _files_of(path)
        except HeadraceError as error:
            if refused is None:
                raise
            refused(error, path)
            continue
        for file in files:
            real = Path(os.path.realpath(file))
            if real not in seen:
                seen.add(real)
                yield file


def _files_of(path: Path) -> list[Path]:
    files = list(configs_in(path)) if os.path.isdir(path) else [path]
    if not files:
        refuse_folder(path)
        raise ConfigError(
            "the folder has no config.",
            where=str(path),
            expected="a file with a group [property], a pipeline file or a deepstream-app "
            "config, named *.txt, *.yml or *.yaml",
        )
    return files


def is_something_else(path: Path) -> bool:
    """Whether a text file is certainly no config: it has neither a group nor a key with a value."""
    try:
        with open_regular(path) as file:
            return _KEY.search(file.read(_MOST_READ)) is None
    except (OSError, ValueError):
        return False  # reading it says why


def configs_in(folder: Path) -> Iterator[Path]:
    """Yield the configs and pipeline files of a folder and those below it."""
    count = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            count += 1
            if count > _MOST_FILES:
                return
            if path.suffix.lower() in _SUFFIXES and file_kind(path) is not None:
                yield path
