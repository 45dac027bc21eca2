"""Sources of a run, opened as a pipeline's list describes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import ConfigError, MediaError
from headrace._core.findings import Finding
from headrace._core.gpu.cuda import gpu_count
from headrace._core.gpu.visible_gpus import how_many
from headrace._core.notices import note_once
from headrace._core.text import counted
from headrace._core.urls import url_scheme
from headrace.config.paths import is_live, safe_uri
from headrace.config.pipeline_spec import SourceSpec
from headrace.engine.device import CPU, Device
from headrace.media import ReconnectPolicy, open_source
from headrace.media.sources.base import FailedSource, SteppedSource
from headrace.media.sources.retried import RetriedSource
from headrace.pipeline.decoder_memory import DecoderMemory

if TYPE_CHECKING:
    from headrace.media import Source

_MANY, _LANES = 8, 8  # sources from which on they are opened side by side; so many at once


def devices_of(stages: Iterable[object]) -> Iterator[tuple[object, Device]]:
    """The opened models among `stages`, and where they compute."""
    for stage in stages:
        device = getattr(getattr(stage, "model", None), "device", None)
        if isinstance(device, Device):
            yield stage, device


def gpu_of(stages: Iterable[object]) -> int | None:
    """The GPU of the first opened model that computes on one: it decodes, too; None of none."""
    return next((device.gpu for _, device in devices_of(stages) if device.is_gpu), None)


def decoding_device(spec: SourceSpec, asked: str, models: Sequence[Device]) -> Device:
    """Choose where a source is decoded: on the GPU of its `gpu-id`, else on the first model's.

    Args:
        spec: the source.
        asked: as for `choose_device`.
        models: where the models run; without a GPU among them, videos are decoded by the CPU.
    """
    gpus = [device for device in models if device.is_gpu]
    if not gpus:
        return CPU
    first, number, count = gpus[0], spec.gpu_id, gpu_count()
    if number is None or asked.startswith("cuda:"):
        return first
    if number < count:
        return replace(first, gpu=number)
    text = f"gpu-id={number} asks for a GPU that is not there ({how_many(count)}): "
    text += f"GPU {first.gpu} decodes; gpu-id={first.gpu} asks for that one"
    return replace(first, notices=(Finding("gpu-other", "info", text, spec.label),))


def open_listed(
    spec: SourceSpec,
    number: int,
    several: bool,
    memory: DecoderMemory,
    gpu: int | None,
    *,
    retried: bool = False,
) -> Source:
    """A source of a run.

    Beside others, a stream that is not there yet is waited for while they run, and a file that is
    damaged fails in its turn.

    Args:
        spec: the source.
        number: its id.
        several: True where there may be others.
        memory: of decoders.
        gpu: number of the GPU that decodes; None for none.
        retried: True opens it again by its keys, whatever ended it; files only where a key is set.

    Raises:
        MediaError: there is no such file, or it cannot be opened and is the only source.
    """
    again = partial(_opened, spec, number, several, memory, gpu)
    try:
        source = again()
    except MediaError as error:
        there = spec.is_stream or Path(spec.uri).exists()
        if not there and (place := spec.origin("uri").where):
            raise MediaError(
                f"{error:brief}: {spec.label}",
                where=place,
                fix=("mend the uri there", "or name another video or URL behind the file"),
                data={"uri": spec.label},
            ) from error
        if not (several and there):
            raise
        source = FailedSource(error, spec.label, number, live=is_live(spec.uri))
        source.uri = safe_uri(spec.uri)
    keys = (spec.reconnect_interval_s, spec.reconnect_attempts)
    if retried and (spec.is_stream or any(key is not None for key in keys)):
        return RetriedSource(source, again, _policy(spec, several))
    return source


def opened_together(openings: Sequence[Callable[[], Source]]) -> Iterator[Source]:
    """Open sources, many of them side by side, and give them in order.

    Raises:
        HeadraceError: the first that one of `openings` raises; those behind it are closed.
    """
    if len(openings) < _MANY:
        yield from (open_one() for open_one in openings)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_LANES, "headrace-open") as pool:
        waiting = deque(pool.submit(open_one) for open_one in openings)
        try:
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in [future for future in waiting if not future.cancel()]:
                if left.exception() is None:
                    left.result().close()


def open_requested(
    uri: str, number: int, memory: DecoderMemory, stages: Iterable[object]
) -> Source:
    """A stream that a request added, as one of a pipeline file: it is waited for while it is away.

    Raises:
        MediaError: it cannot be opened.
    """
    gpu = gpu_of(stages)
    return open_listed(SourceSpec.given(uri), number, True, memory, gpu, retried=True)


def _policy(spec: SourceSpec, several: bool) -> ReconnectPolicy:
    every = spec.reconnect_interval_s or spec.start_interval_s or ReconnectPolicy().first_s
    most = max(every, ReconnectPolicy().max_s)
    attempts = spec.reconnect_attempts
    attempts = None if attempts is None or attempts < 0 else attempts
    if spec.reconnect_interval_s == 0:  # never
        attempts = 0
    return ReconnectPolicy(every, most, attempts, from_start=several or bool(spec.start_interval_s))


def _opened(
    spec: SourceSpec, number: int, several: bool, memory: DecoderMemory, gpu: int | None
) -> Source:
    options: dict[str, Any] = {"live": spec.live, "fps": spec.fps, "gpu": gpu}
    options["threads"] = memory.threads
    if spec.rtp_protocol in ("tcp", "udp"):
        options["transport"] = spec.rtp_protocol
    if spec.playlist_reach is not None:
        options["playlist_reach"] = spec.playlist_reach
    if spec.latency_ms is not None:
        options["latency_s"] = spec.latency_ms / 1000
    options["reconnect"] = _policy(spec, several)
    options["key_frames_only"], options["low_delay"] = spec.key_frames_only, spec.low_delay
    options["renumber"] = spec.renumber
    options["options"] = _ffmpeg_options(spec)
    again = partial(open_source, spec.uri, source_id=number, **options)
    source = again()
    memory.add(source)
    if spec.dewarper is not None:
        again = partial(_dewarped, again, spec.dewarper, spec.surface)
        source = again(source)
    if spec.name:
        source.rename(spec.name)
    if spec.loop or spec.drop_frame_interval or spec.pace_ms:
        loops = spec.loop and not source.live
        return SteppedSource(
            source,
            reopen=again if loops else None,
            step=max(1, spec.drop_frame_interval),
            pace_s=spec.pace_ms / 1000,
        )
    return source


def _dewarped(
    open_one: Callable[[], Source], path: Path, surface: int, opened: Source | None = None
) -> Source:
    """A view of a source, which is opened unless it is already."""
    from headrace.config.dewarper_file import load_dewarper
    from headrace.media.dewarping import DewarpedSource, Dewarper

    config = load_dewarper(path)
    if surface >= len(config.surfaces):
        text = f"surface {surface}: the file makes {counted(len(config.surfaces), 'surface')}"
        raise ConfigError(text, where=str(path), expected=f"0 to {len(config.surfaces) - 1}")
    source = DewarpedSource(opened or open_one(), Dewarper(config, surface))
    for notice in config.notices:
        note_once(source.notices, notice)
    return source


def _ffmpeg_options(spec: SourceSpec) -> dict[str, str]:
    """FFmpeg's options for a camera, and for a stream that comes by UDP."""
    options: dict[str, str] = {}
    if spec.uri.startswith("camera:"):
        if spec.camera_size is not None:
            options["video_size"] = "{}x{}".format(*spec.camera_size)
        if spec.camera_fps is not None:
            options["framerate"] = f"{spec.camera_fps:.6g}"
        if spec.camera_format is not None:
            options["input_format"] = spec.camera_format
    elif spec.udp_buffer_size and url_scheme(spec.uri) in ("rtsp", "rtsps", "udp", "rtp"):
        options["buffer_size"] = str(spec.udp_buffer_size)
    return options
