"""Names of output files: of frames, of sources, of both."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from headrace._core.errors import MediaError
from headrace._core.urls import url_scheme
from headrace.media.frame import Frame
from headrace.media.names import IMAGE_SUFFIXES

ENCODED_SUFFIXES = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG"}
VIDEO_FORMATS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska"}
PUBLISH_SCHEMES = {
    "rtsp": "rtsp://HOST/PATH",
    "rtsps": "rtsps://HOST/PATH",
    "udp": "udp://HOST:PORT",
    "rtsp-server": "rtsp-server://HOST:PORT/PATH",
}
_PUBLISH = re.compile(rf"(?:^|[:/])({'|'.join(PUBLISH_SCHEMES)}):/+", re.IGNORECASE)
MAX_LABEL = 60  # a file name may have 255 bytes, and more is added to it
_PLACEHOLDER = re.compile(r"\{(source|id)\}")


class HasName(Protocol):
    """A source, or a stand-in for one."""

    @property
    def name(self) -> str:
        """As its user calls it."""

    @property
    def source_id(self) -> int:
        """Its number in a pipeline."""


def _plain_label(name: str) -> str:
    """A source's name as a part of a file name: letters, digits, `.`, `-` and `_`."""
    if url_scheme(name):
        text = name.split("://", 1)[1]
    else:
        path = Path(name)
        text = path.stem if path.suffix else path.name
    text = re.sub(r"[^\w.-]+", "_", text).strip("._")
    while len(text.encode()) > MAX_LABEL:
        text = text[:-1]
    return text or "source"


def source_labels(sources: Sequence[HasName]) -> dict[int, str]:
    """Name of each source in file names (id -> label).

    The name of the file without extension, or host and path of a URL, with `_` for what does not
    belong into a file name. Sources of the same name, whatever the case, have their id behind it.
    """
    plain = {s.source_id: _plain_label(s.name) for s in sources}
    count: dict[str, int] = {}
    for label in plain.values():
        count[label.casefold()] = count.get(label.casefold(), 0) + 1
    labels = {i: f"{s}_{i}" if count[s.casefold()] > 1 else s for i, s in plain.items()}
    if len({s.casefold() for s in labels.values()}) < len(labels):  # a_1 beside two of a
        labels = {i: f"{s}_{i}" for i, s in plain.items()}
    return labels


def has_placeholder(spec: str) -> bool:
    """Whether an output is meant once for each source: `{source}` or `{id}` is in it."""
    return bool(_PLACEHOLDER.search(spec))


def check_placeholders(spec: str) -> None:
    """Refuse `{…}` that stands for nothing: it would silently become part of a file's name.

    Raises:
        MediaError: naming it.
    """
    for placeholder in re.findall(r"\{[A-Za-z_]*\}", _PLACEHOLDER.sub("", spec)):
        raise MediaError(
            f"{placeholder} stands for nothing",
            where=spec,
            expected="{source} for the name of the source, {id} for its number",
        )


def expand_sink_path(spec: str, source: HasName, sources: Sequence[HasName] = ()) -> str:
    """The output of one source: `{source}` becomes its label, `{id}` its number.

    Args:
        spec: a path or `kind:path`.
        source: the source.
        sources: all sources of the run: ids distinguish those of the same name.

    Returns:
        The output; `spec` itself if it has no placeholder.
    """
    labels = source_labels([*(s for s in sources if s.source_id != source.source_id), source])
    values = {"source": labels[source.source_id], "id": str(source.source_id)}
    return _PLACEHOLDER.sub(lambda m: values[m[1]], spec)


def stream_url(name: str) -> str:
    """The URL in an output's name.

    Pipelines keep outputs as absolute paths: a folder may stand before it, and one slash in it.
    """
    match = _PUBLISH.search(name)
    return f"{match[1]}://{name[match.end() :]}" if match else name


class FrameNames:
    """File names for frames: an image keeps its name, video frames are numbered.

    With more than one source, the source's label stands before it. If the sources are not known
    from the start, all but the first to come have `sourceN_` instead.

    Args:
        pattern: for frames of video, with one `%d` directive.
        labels: label of each source by id, if they are known.
    """

    def __init__(self, pattern: str, labels: Mapping[int, str] | None = None) -> None:
        self._pattern = pattern
        self._labels = labels or {}
        self._used: set[str] = set()
        self._first_source: int | None = None

    def stem(self, frame: Frame) -> str:
        """A name without suffix that no frame had before."""
        path = Path(frame.source)
        prefix = ""
        if len(self._labels) > 1 and frame.source_id in self._labels:
            prefix = f"{self._labels[frame.source_id]}_"
        if path.suffix.lower() not in IMAGE_SUFFIXES:
            # numbers do not repeat: nothing to remember for long videos
            return (prefix or self._other_source(frame)) + self._pattern % frame.frame
        stem = prefix + path.stem
        if stem in self._used:
            stem = f"{stem}_{frame.frame:06d}"
        if stem in self._used:  # folders with images of the same names
            stem = f"source{frame.source_id}_{stem}"
        self._used.add(stem)
        return stem

    def _other_source(self, frame: Frame) -> str:
        if self._first_source is None:
            self._first_source = frame.source_id
        return "" if frame.source_id == self._first_source else f"source{frame.source_id}_"
