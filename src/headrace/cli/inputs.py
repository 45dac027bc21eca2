"""Arguments of commands: configs, pipeline files, models, engines and sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace._core.formats.archives import is_nn_archive
from headrace._core.formats.table import is_model_name

if TYPE_CHECKING:
    from headrace.config import ModelConfig, PipelineSpec, TrackerSpec
    from headrace.config.enums import Generation
    from headrace.config.overrides import GivenKey

_CONFIGS = (".txt", ".yml", ".yaml", ".ini", ".cfg", ".conf", ".onnx", ".xml")
_ENGINES = (".engine", ".plan", ".trt")
_WEIGHTS = (".caffemodel", ".uff", ".weights", ".prototxt", ".onnx", ".xml")


def is_config(name: str, *, lists: bool = False) -> bool:
    """Return whether an argument is a config and not a source; of a bare model it is True.

    Args:
        name: the argument.
        lists: True where a `.txt` may be a list of inputs: one whose first line opens no `[group]`,
            and which is no config of nvinferserver.
    """
    if "://" in name:
        return not lists and name.lower().endswith(_CONFIGS)
    if not name.lower().endswith(_CONFIGS):
        return is_model_name(name) or is_nn_archive(Path(name))
    path = Path(name)
    if not lists or path.suffix.lower() != ".txt" or not path.is_file():
        return True
    from headrace.config.server_config import is_server_config

    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            text = line.strip()
            if text and not text.startswith(("#", ";")):
                return text.startswith("[") or is_server_config(path.read_bytes())
    return True


def is_engine(path: Path) -> bool:
    """Return whether a file is named like an engine."""
    return path.suffix.lower() in _ENGINES


def is_model(path: Path) -> bool:
    """Return whether a file is named like a model; a .cfg is one if it is a Darknet network."""
    suffix = path.suffix.lower()
    if suffix != ".cfg":
        return suffix in _WEIGHTS or is_nn_archive(path)
    try:
        with open(path, "rb") as file:
            text = file.read(65536)
    except OSError:
        return False
    lines = (line.strip().lower() for line in text.splitlines())
    return next((x for x in lines if x and x[:1] not in b"#;"), b"") in (b"[net]", b"[network]")


def parted(
    inputs: Sequence[str], *, lists: bool = False
) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """Part arguments into configs, which come first, and the sources that these run on.

    Args:
        inputs: one or more. The first is a config whatever its name, unless `lists`.
        lists: as `is_config` takes it.

    Returns:
        The pipeline file, or None and the configs; then the sources.

    Raises:
        click.UsageError: a pipeline file and configs are mixed; a source stands before a config.
    """
    from headrace.config import is_pipeline_file

    first, *rest = inputs
    kinds = [is_config(name, lists=lists) for name in inputs]
    if is_pipeline_file(first):
        if any(kinds[1:]):
            text = f"{first} is a pipeline file; it names its configs itself"
            raise click.UsageError(f"{text}. Behind it stand sources: videos, images, URLs.")
        return first, (), tuple(rest)
    if not kinds[0] and (lists or any(kinds[1:])):
        raise click.UsageError(f"{first} stands where a config should; configs come first")
    count = kinds.index(False, 1) if False in kinds[1:] else len(inputs)
    return None, tuple(inputs[:count]), tuple(inputs[count:])


def spec_of(
    inputs: Sequence[str],
    outs: Sequence[str] = (),
    tracker: str | None = None,
    analytics: str | None = None,
    generation: Generation | None = None,
    *,
    keep_open: bool = False,
) -> PipelineSpec:
    """The pipeline that a command line means.

    Args:
        inputs: a pipeline file, maybe sources instead of its own; or configs, then sources.
        outs: outputs; with a pipeline file they replace its own.
        tracker: as `open_tracker` takes it; replaces the pipeline file's.
        analytics: path of a config file of `nvdsanalytics`; replaces the pipeline file's.
        generation: release that a deepstream-app config is read as.
        keep_open: True for one that goes on without sources, and needs none.

    Raises:
        click.UsageError: no config or no source is given, or configs and sources are mixed.
        ConfigError: the pipeline file cannot be read, or there is no such config.
    """
    from headrace.config import ModelConfig, load_pipeline
    from headrace.media.names import IMAGE_SUFFIXES
    from headrace.pipeline.opening import pipeline_spec

    pipeline, configs, names = parted(inputs)
    if pipeline is None:
        if not names and not keep_open:
            for name in configs:
                if not Path(name).exists():
                    ModelConfig.load(name)  # it says what there is instead
            text = "Missing argument 'SOURCE...': a video, image, folder or URL"
            listed = ", ".join(configs)
            raise click.UsageError(f"{text}, behind the config or model {listed}.")
        late = next((name for name in names if is_config(name)), None)
        if late is not None:
            raise click.UsageError(f"{late} stands behind a source; configs come first")
    if len(names) > 1 and all(Path(n).suffix.lower() in IMAGE_SUFFIXES for n in names):
        raise click.UsageError(
            f"{len(names)} images are given one by one; a pattern must be quoted "
            "('photos/*.jpg') to be one source, or name their folder"
        )
    return pipeline_spec(
        None if pipeline is None else load_pipeline(pipeline, generation=generation),
        configs=configs if pipeline is None else None,
        sources=names,
        outputs=outs,
        tracker=tracker,
        analytics=analytics,
        keep_open=keep_open,
    )


def with_looks(tracker: TrackerSpec | None, model: str) -> TrackerSpec:
    """A tracker, `iou` without one, with a ReID model beside it."""
    from headrace.config import TrackerSpec

    base = TrackerSpec(name="iou") if tracker is None else tracker
    return base.changed(settings={**base.settings, "reid": model})


def load_config(path: Path, settings: Sequence[GivenKey]) -> ModelConfig:
    """Read the only config of a command, with the keys set over it.

    Raises:
        ConfigError: the file or an option is refused.
    """
    from headrace.config import ModelConfig
    from headrace.config.overrides import distributed

    return ModelConfig.load(path, distributed(settings, [path.name])[0])


def refuse_options(path: Path, settings: Sequence[GivenKey]) -> None:
    """Refuse keys for a file that is no config.

    Raises:
        ConfigError: there is something.
    """
    if settings:
        from headrace._core.errors import ConfigError

        option, text = settings[0].shown
        raise ConfigError(f"{path.name} is no config.", where=f"{option} {text}")
