"""INT8 scales of a config's model, found from images that are preprocessed as in a run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._core.errors import ConfigError, EngineError, MediaError
from headrace._core.files import sha256_of
from headrace._core.findings import Finding
from headrace.config.enums import ProcessMode
from headrace.config.model_files import model_paths
from headrace.engine.input_shapes import complete_infer_dims, resolve_shape
from headrace.engine.precision.cache import DEFAULT_HEADER, CalibrationTable
from headrace.engine.precision.collect import MOST_IMAGES, ActivationRunner, Collector
from headrace.engine.precision.histogram import METHODS, Method
from headrace.engine.precision.rules import has_own_scales
from headrace.infer.model.image_input import axis_order, network_dims
from headrace.infer.model.network_source import source_with_plugins
from headrace.infer.preprocess import Preprocessor
from headrace.media import open_source
from headrace.media.frame import Frame

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.network.network import Network

DEFAULT_FRAMES = 200
_SAVE_EVERY_S = 10.0
_SHOWN_BY = (
    "net_scale_factor", "offsets", "mean_file", "model_color_format", "network_input_order",
    "maintain_aspect_ratio", "symmetric_padding", "centre_crop", "scaling_filter", "infer_dims",
    "profile",
)  # fmt: skip


@dataclass(slots=True)
class CalibrationReport:
    """Result of a calibration.

    Attributes:
        table: the scales.
        path: where they were written.
        method: how they were found.
        frames: images seen; `resumed` of them by an earlier run.
        notices: what is worth knowing.
    """

    table: CalibrationTable
    path: Path
    method: Method
    frames: int
    resumed: int
    notices: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Selected:
    """One image source and which of its frames are used."""

    name: str
    frames: int
    step: float
    """Every step-th frame, so that they are spread evenly; 1 where the length is unknown."""


def calibration_path(cfg: ModelConfig) -> Path:
    """Where the table of a config belongs: its `int8-calib-file`, or beside the model.

    Raises:
        EngineError: the config names no model.
    """
    if cfg.int8_calib_file is not None:
        return cfg.int8_calib_file
    model = next(iter(model_paths(cfg).values()), None)
    if model is None:
        raise _no_model(cfg)
    return model.with_name(f"{model.name}.calib")


def calibrate(
    cfg: ModelConfig,
    sources: Sequence[str],
    *,
    frames: int = DEFAULT_FRAMES,
    method: Method = "entropy",
    percentile: float = 99.99,
    cache: Path | None = None,
    header: str = DEFAULT_HEADER,
    overwrite: bool = False,
    restart: bool = False,
    threads: int | None = None,
    on_stage: Callable[[str, int | None], None] | None = None,
    on_frame: Callable[[], None] | None = None,
) -> CalibrationReport:
    """Find scales and write them as a calibration table.

    What was seen is saved beside the table every few seconds and when interrupted; the same call
    goes on from there and ends with the same table, bit for bit.

    Args:
        cfg: the model, and how images are shown to it.
        sources: videos, images, folders or patterns of images.
        frames: how many to use of all sources together, spread evenly over each.
        method, percentile: see `clip_at`.
        cache: where to write; `calibration_path` by default.
        header: first line of the table.
        overwrite: replace a table that is there.
        restart: forget the state of an interrupted run.
        threads: CPU threads of the engine.
        on_stage: called with the work that begins, and its number of frames.
        on_frame: called after each frame.

    Raises:
        ConfigError, ModelError, EngineError: the model cannot be used, see `load_or_build`, or has
            scales of its own; the table is there already, or cannot be written.
        MediaError: a source cannot be read, or has no frames.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r}: one of {', '.join(METHODS)}")
    if not 0 < percentile <= 100 or frames < 1:
        raise ValueError("percentile must be above 0 and at most 100, frames at least 1")
    say, tick = on_stage or (lambda text, total: None), on_frame or (lambda: None)
    path = cache or calibration_path(cfg)
    if path.exists() and not overwrite:
        raise EngineError(
            "there is a file already",
            where=str(path),
            fix="--overwrite replaces it, --cache FILE writes another",
        )
    _check_target(path)
    decisions: list[Finding] = []
    source = source_with_plugins(cfg, decisions)
    if source is None:
        raise _no_model(cfg)
    say("reading the model", None)
    network = source.network()
    if has_own_scales(network):
        raise EngineError(
            "the scales are in the model (QuantizeLinear): a calibration table adds nothing",
            where=str(network.path or cfg.path),
            fix="set network-mode=1: it runs as it is, without int8-calib-file",
        )
    channels, height, width = network_dims(network.inputs[0], cfg)
    preprocessor = Preprocessor.from_config(cfg, width, height, channels)
    chosen, notices = select_frames(sources, frames)
    notices = decisions + notices
    if cfg.process_mode is ProcessMode.SECONDARY:
        text = "process-mode=2: each image is shown whole; give images of single objects"
        notices.append(Finding("calibration-of-objects", "warning", text, str(cfg.path)))
    runner = ActivationRunner(network, shape=image_shape(cfg, network), threads=threads)
    collector = Collector(runner, _fingerprint(cfg, network, chosen))
    state = path.with_name(f"{path.name}.partial")
    if not restart and state.exists() and (why := collector.load(state)):
        notices.append(
            Finding("calibration-resumed", "info", f"not continued from: {why}", str(state))
        )
    resumed = collector.frames
    if resumed:
        notices.append(
            Finding("calibration-resumed", "info", f"goes on after {resumed} frames", str(state))
        )
    total = sum(item.frames for item in chosen)
    say("calibrating", total)
    for _ in range(resumed):
        tick()
    try:
        _collect(collector, preprocessor, chosen, cfg.batch_size, state, tick)
    finally:
        runner.close()
    if collector.frames == 0:
        raise MediaError("no frame could be read", where=", ".join(sources))
    say("choosing scales", None)
    scales = collector.scales(method, percentile)
    table = CalibrationTable.of(scales, header)
    table.save(path)
    with suppress(OSError):
        state.unlink(missing_ok=True)
    notices += _remarks(collector, scales, path)
    return CalibrationReport(table, path, method, collector.frames, resumed, notices)


def _collect(
    collector: Collector,
    preprocessor: Preprocessor,
    chosen: Sequence[Selected],
    batch_size: int,
    state: Path,
    tick: Callable[[], None],
) -> None:
    fixed = collector.runner.batch
    size = fixed or min(batch_size, MOST_IMAGES)
    batch = preprocessor.empty(size)
    filled, saved = 0, time.monotonic()
    try:
        for frame in selected_frames(chosen, skip=collector.frames):
            preprocessor(frame, batch[filled])
            filled += 1
            if filled == size:
                collector.add(batch)
                filled = 0
                if time.monotonic() - saved > _SAVE_EVERY_S:
                    collector.save(state)
                    saved = time.monotonic()
            tick()
        if filled:
            if fixed:  # a run needs all items: the last image once more
                batch[filled:] = batch[filled - 1]
            collector.add(batch if fixed else batch[:filled], filled)
    except BaseException:
        if collector.frames and collector.whole:
            with suppress(EngineError):
                collector.save(state)
        raise


def selected_frames(chosen: Sequence[Selected], skip: int = 0) -> Iterator[Frame]:
    """The frames that were chosen, in order, without the first `skip`.

    Raises:
        MediaError: a source cannot be read.
    """
    for item in chosen:
        if skip >= item.frames:
            skip -= item.frames
            continue
        indices = {int(i * item.step) for i in range(skip, item.frames)}
        skip = 0
        with open_source(item.name, live=False) as source:
            last = max(indices)
            for index, frame in enumerate(source):
                if index in indices:
                    yield frame
                if index >= last:
                    break


def select_frames(sources: Sequence[str], frames: int) -> tuple[list[Selected], list[Finding]]:
    """Which frames to use: as many of each source, spread evenly.

    Raises:
        MediaError: a source cannot be opened.
    """
    chosen, notices = [], []
    for number, name in enumerate(sources):
        share = frames // len(sources) + (number < frames % len(sources))
        with open_source(name, live=False) as source:
            have = source.frames
        if have is not None and have < share:
            text = f"has {have} frames, {share} were asked for"
            notices.append(Finding("calibration-frames", "info", text, name))
            share = have
        step = max(1.0, have / share) if have and share else 1.0
        chosen.append(Selected(name, share, step))
    return chosen, notices


def image_shape(cfg: ModelConfig, network: Network) -> tuple[int | None, ...]:
    """The shape of a model's image input under a config; None for a free batch.

    Raises:
        ConfigError, EngineError: they do not go together.
    """
    order, dims = axis_order(cfg), complete_infer_dims(cfg.infer_dims)
    return resolve_shape(network.inputs[0], dims, order, where=str(cfg.path))


def _fingerprint(cfg: ModelConfig, network: Network, chosen: Sequence[Selected]) -> str:
    """Of everything that decides which numbers the activations see."""
    parts = [network.to_proto().SerializeToString(deterministic=True)]
    shown = {name: str(getattr(cfg, name)) for name in _SHOWN_BY}
    images = []
    for item in chosen:
        path = Path(item.name)
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        facts = [(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in files if p.exists()]
        images.append((item.name, item.frames, item.step, facts))
    parts.append(json.dumps([shown, images]).encode("utf-8", "backslashreplace"))
    if cfg.mean_file is not None and os.path.isfile(cfg.mean_file):
        parts.append(Path(cfg.mean_file).read_bytes())
    return sha256_of(*parts)


def _check_target(path: Path) -> None:
    """Refuse a table that could not be written, before hours of calibration.

    Raises:
        EngineError: the folder is missing, or what stands there is no table.
    """
    if not path.parent.is_dir():
        raise EngineError(
            "there is no such folder", where=str(path.parent), fix="make it, or choose another one"
        )
    if not path.exists():
        return
    head = b""
    if path.is_file():
        with open(path, "rb") as file:
            head = file.read(4)
    if not path.is_file() or head not in (b"", b"TRT-"):
        raise EngineError(
            "is not a calibration table and is not overwritten",
            where=str(path),
            fix="--cache FILE writes another",
        )


def _remarks(collector: Collector, scales: dict[str, float], path: Path) -> list[Finding]:
    notices = []
    odd = [name for name, h in collector.histograms.items() if h.odd]
    if odd:
        text = f"{len(odd)} tensors had values that are no numbers, left out: {', '.join(odd[:3])}"
        notices.append(Finding("outputs-not-finite", "warning", text, str(path)))
    still = [name for name, scale in scales.items() if scale == 0]
    if still:
        text = f"{len(still)} tensors were always 0 and get no scale: {', '.join(still[:3])}"
        notices.append(Finding("tensors-constant", "info", text, str(path)))
    return notices


def _no_model(cfg: ModelConfig) -> ConfigError:
    return ConfigError(
        "the config names no model that can be read",
        where=str(cfg.path),
        expected="onnx-file=<model.onnx>, or the keys of a Caffe, UFF or Darknet model",
    )
