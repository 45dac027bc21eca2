"""The kind of a config file, found by its groups."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Literal

from headrace.config.reading import ANALYTICS_GROUP, MAX_BYTES, is_yaml

FileKind = Literal["pipeline", "app", "model", "analytics"]

_OURS = frozenset(("sources", "models", "sinks"))
_APP = re.compile(
    r"application|tiled-display|source(-list|-attr-all|[0-9]+)?|sink[0-9]+|osd|streammux"
    r"|primary-gie|secondary-gie[0-9]*|tracker|tests"
)
# `source` alone beside one of our keys is `sources` without its s
_APP_SURE = re.compile(
    r"application|tiled-display|source(-list|-attr-all|[0-9]+)|sink[0-9]+|streammux|primary-gie"
)
_GROUP = re.compile(rb"^[ \t\f\r]*\[([^\[\]\x00-\x1f\x7f]+)\][ \t\r]*$", re.MULTILINE)


def file_kind(path: str | Path) -> FileKind | None:
    """Return the kind of a file by its groups.

    A pipeline, a deepstream-app, a model's config, or rules of `nvdsanalytics`.

    Cheap, and never an error: what cannot be read, is no regular file, or is none of these is
    None. Only names ending in .yml and .yaml are looked at as YAML.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or os.path.getsize(path) > MAX_BYTES:
            return None
        data = Path(path).read_bytes()
    except (OSError, ValueError):
        return None
    return kind_of(data, Path(path))


def kind_of(data: bytes, path: Path) -> FileKind | None:
    """`file_kind` of content that was read already."""
    if b"\0" in data:
        return None
    if is_yaml(path):
        from headrace.config.yaml_nodes import top_level_keys  # brings PyYAML

        names = top_level_keys(data)
    else:
        names = [name.decode("utf-8", "replace") for name in _GROUP.findall(data)]
    if any(map(ANALYTICS_GROUP.fullmatch, names)):
        return "analytics"
    if "property" in names:
        return "model"
    ours = is_yaml(path) and _OURS.intersection(names)
    if ours and not any(map(_APP_SURE.fullmatch, names)):
        return "pipeline"
    return "app" if any(map(_APP.fullmatch, names)) else None


def is_pipeline_file(path: str | Path) -> bool:
    """Whether `load_pipeline` is the one to read a file: it has a pipeline's groups.

    Never an error; a model's config, a video and what is not there are False.
    """
    return file_kind(path) in ("pipeline", "app")
