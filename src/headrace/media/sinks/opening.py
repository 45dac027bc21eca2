"""Opening outputs: their kinds by extension or prefix, refused before one is created."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import MediaError
from headrace._core.files import os_errors
from headrace._core.lazy import import_extra, lazy
from headrace._core.near import near_names
from headrace._core.urls import has_login, url_scheme, without_secrets
from headrace.config.pipeline_keys import MESSAGE_SCHEMES
from headrace.config.pipeline_keys import SINK_KINDS as PIPELINE_SINK_KINDS
from headrace.media.sinks.naming import (
    ENCODED_SUFFIXES,
    PUBLISH_SCHEMES,
    VIDEO_FORMATS,
    HasName,
    check_placeholders,
    has_placeholder,
    source_labels,
)

if TYPE_CHECKING:
    from headrace.media.sinks.base import Sink
    from headrace.media.sinks.coding import Coding
    from headrace.media.sinks.lasting import Limits

SINK_KINDS = {kind: text for kind, text in PIPELINE_SINK_KINDS.items() if kind != "fake"}
"""Kinds of output, each with its meaning and its file names."""

_ALIASES = {"mp4": "video", "image": "images", "json": "coco"}
_SUFFIXES = {
    **dict.fromkeys(VIDEO_FORMATS, "video"),
    **dict.fromkeys(ENCODED_SUFFIXES, "images"),
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "coco",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".dota": "dota",
    ".m3u8": "hls",
}
_CLASSES = {
    "video": (".video", "VideoSink"),
    "images": (".images", "ImageSink"),
    "jsonl": (".jsonl", "JsonLinesSink"),
    "coco": (".coco", "CocoSink"),
    "kitti": (".kitti", "KittiSink"),
    "kitti-track": (".kitti", "KittiTrackSink"),
    "kitti-primary": (".app_kitti", "PrimaryKittiSink"),
    "kitti-objects": (".app_kitti", "ObjectKittiSink"),
    "dota": (".dota", "DotaSink"),
    "masks": (".images", "ClassMapSink"),
    "parquet": (".table", "ParquetSink"),
    "arrow": (".table", "ArrowSink"),
    "messages": (".messages", "MessageSink"),
    "publish": (".publish", "PublishSink"),
    "hls": (".hls", "HlsSink"),
    "clip": (".clip", "ClipSink"),
    "object-images": (".object_images", "ObjectImageSink"),
    "smart-record": (".smart_record", "SmartRecordSink"),
}
_URLS = {"messages": MESSAGE_SCHEMES, "publish": tuple(PUBLISH_SCHEMES)}  # in the place of a path
_CLIPS = ("clip", "smart-record")
_WITH_OPTIONS = (*_CLIPS, "hls", "object-images")  # of their own, behind the path
_TABLES = frozenset(("parquet", "arrow"))
_FRAME_FILES = frozenset(("images", "coco", "kitti", "kitti-track", "dota", "masks"))


def split_spec(spec: str) -> tuple[str, Path]:
    """The kind and path of an output given as `path` or `kind:path`.

    Raises:
        MediaError: the kind is unknown, or the path does not show it.
    """
    prefix = re.match(r"([A-Za-z][A-Za-z0-9_-]+):(?!//)", spec)
    if prefix and not Path(spec).exists():
        kind = _ALIASES.get(prefix[1].lower(), prefix[1].lower())
        rest = spec[prefix.end() :]
        if (schemes := _URLS.get(kind)) is not None:
            if url_scheme(rest) in schemes:
                return split_spec(rest)
            known = ", ".join(f"{scheme}://" for scheme in schemes)
            raise MediaError(f"{kind} needs a URL", where=without_secrets(spec), expected=known)
        if kind in SINK_KINDS:
            if not rest:
                raise MediaError("the path is missing", where=spec, expected=f"{kind}:PATH")
            return kind, Path(rest)
        raise _unknown(f"{prefix[1]!r} is not a kind of output", spec, kind)
    if (scheme := url_scheme(spec)) in MESSAGE_SCHEMES:
        try:
            login = has_login(spec)
        except ValueError as error:
            raise MediaError(f"is no URL: {error}", where=without_secrets(spec)) from error
        if login:  # it would stand in lists of processes and reports
            raise MediaError(
                "holds a user or password",
                where=without_secrets(spec),
                fix="set HEADRACE_<PROTOCOL>_USER and HEADRACE_<PROTOCOL>_PASSWORD, "
                "as HEADRACE_MQTT_USER",
            )
        return "messages", Path(spec)
    if scheme in PUBLISH_SCHEMES:
        return "publish", Path(spec)
    if scheme:
        raise _unknown(f"no stream is written to {scheme}://", spec)
    path = Path(spec)
    if spec.endswith(os.sep) or path.is_dir():
        return "images", path
    kind_of = _SUFFIXES.get(path.suffix.lower())
    if kind_of is None and "?" in path.name:  # options stand behind it
        plain, _, query = path.name.partition("?")
        kind_of = _SUFFIXES.get(Path(plain).suffix.lower()) if "=" in query else None
    if kind_of is None:
        what = f"extension {path.suffix!r}" if path.suffix else "a name without extension"
        raise _unknown(f"{what} does not say what to write", spec, path.suffix[1:])
    return kind_of, path


def url_of(spec: str) -> str | None:
    """The URL that an output goes to, without the kind in front of it; None for a file.

    Raises:
        MediaError: see `split_spec`.
    """
    kind, _ = split_spec(spec)
    return re.sub(rf"^{kind}:(?!//)", "", spec, flags=re.IGNORECASE) if kind in _URLS else None


def _unknown(problem: str, spec: str, guess: str = "") -> MediaError:
    near = near_names(guess, [*SINK_KINDS, *_ALIASES], 1, cutoff=0.5)
    return MediaError(
        problem,
        where=without_secrets(spec),
        expected="; ".join(f"{kind}: {what}" for kind, what in SINK_KINDS.items()),
        fix=[*(f"did you mean {n}:PATH?" for n in near), "say the kind as kind:PATH"],
    )


def check_sinks(specs: Sequence[str], inputs: Sequence[str | Path] = ()) -> None:
    """Refuse outputs that `open_sink` would refuse by their names, before any is created.

    Args:
        specs: outputs; what `{source}` and `{id}` stand for need not be known yet.
        inputs: what is read or written already.

    Raises:
        MediaError: as `open_sink`; also for two outputs that are one, and for `{…}` that stands
            for nothing.
        MissingExtraError: a package that a kind needs is not installed.
    """
    taken = list(inputs)
    for spec in specs:
        check_placeholders(spec)
        kind, path = _checked(spec, taken)
        if kind in _TABLES:
            import_extra("pyarrow", "arrow")
        if not has_placeholder(spec):
            taken.append(_split_limits(kind, path, spec)[0] if kind not in _URLS else path)


def _checked(spec: str, inputs: Sequence[str | Path]) -> tuple[str, Path]:
    """Kind and path of an output that may be written."""
    if not spec:
        raise MediaError("the output is empty", expected="a path or kind:PATH")
    with os_errors(MediaError, "cannot be written", without_secrets(spec)):
        kind, path = split_spec(spec)
    plain = _split_limits(kind, path, spec)[0] if kind not in _URLS else path
    for source in inputs:
        if _same(plain, Path(source)):
            raise MediaError(
                f"is also {without_secrets(str(source))}, which this run reads or writes: "
                "it would be destroyed",
                where=without_secrets(spec),
                fix="choose another output",
            )
    return kind, path


def open_sink(
    spec: str | os.PathLike[str],
    *,
    inputs: Sequence[str | Path] = (),
    sources: Sequence[HasName] = (),
    fps: float | None = None,
    crf: int = 23,
    preset: str = "veryfast",
    threads: int | None = None,
    append: bool = False,
    coding: Coding | None = None,
    container: str | None = None,
) -> Sink:
    """Open an output, its kind by extension or as `kind:path` (see `SINK_KINDS`).

    Args:
        spec: `out.mp4`, `boxes.jsonl`, `images/`, `kitti:labels`, …
        inputs: what is read or written already; an output that would overwrite one is refused.
        sources: all sources whose frames it gets, if they are several: their names stand in the
            names of files for single frames.
        fps: frame rate of the source, for video.
        crf, preset, threads: of the H.264 encoder.
        coding: codec and settings of a video; None is H.264.
        container: of a video, `mp4` or `matroska`; None is what the name ends in.
        append: True empties nothing that an earlier run wrote: JSON Lines, playlists and clips go
            on, everything else gets the next number, files of a killed run are finished, and a
            full disk is waited for. Outputs with `rotate`, `size` or `disk` always do so.

    Returns:
        The sink. Missing parent folders are created; an existing file is replaced.

    Raises:
        MediaError: unknown kind, same as an input, or it cannot be created.
        MissingExtraError: a package that the kind needs is not installed.
    """
    spec = os.fspath(spec)
    kind, path = _checked(spec, inputs)
    options: dict[str, Any] = {}
    if kind == "video":
        options = {"fps": fps, "crf": crf, "preset": preset, "threads": threads}
        options |= {"container": container} if container else {}
        options |= {"coding": coding} if coding else {}
    elif kind in ("publish", "hls"):
        options = {"fps": fps, "threads": threads}
        options |= {"coding": coding} if coding and kind == "publish" else {}
    elif kind in _FRAME_FILES:
        options = {"labels": source_labels(sources)}
    sink_class = _sink_class(kind)
    if kind in _URLS or str(path) == "-":
        return sink_class(spec, path, **options)
    path, limits = _split_limits(kind, path, spec)
    if not (append or limits):
        return sink_class(spec, path, **options)
    if kind in ("jsonl", "hls"):
        options["append"] = True
    elif kind in _TABLES:
        options["journal"] = True
    own = path.with_name(path.name.partition("?")[0]) if kind in _WITH_OPTIONS else path

    def open_at(place: Path) -> Sink:
        return sink_class(spec, path if place == own else place, **options)

    from headrace.media.sinks.lasting import LastingClips, LastingSink

    lasting = LastingClips if kind in _CLIPS else LastingSink
    return lasting(spec, own, kind, open_at, limits)


def _split_limits(kind: str, path: Path, name: str) -> tuple[Path, Limits | None]:
    """See `lasting.split_limits`; None without a limit."""
    if "?" not in path.name:
        return path, None
    from headrace.media.sinks.lasting import split_limits

    return split_limits(kind, path, name)


def _sink_class(kind: str) -> Callable[..., Sink]:
    """The class of a kind of output; only its module is imported."""
    module, name = _CLASSES[kind]
    find, _ = lazy("headrace.media.sinks", {module: name})
    sink_class: Callable[..., Sink] = find(name)
    return sink_class


def _same(a: Path, b: Path) -> bool:
    try:
        return a.samefile(b)
    except (OSError, ValueError):  # one of them is missing, or a URL
        return _real(a) == _real(b)


def _real(path: Path) -> str:
    """Where a path will lead once the folders on its way are made."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.abspath(path)
