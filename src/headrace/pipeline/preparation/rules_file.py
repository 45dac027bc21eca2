"""The config file of `nvdspreprocess`, INI or YAML, as it is.

Facts: the manual of Gst-nvdspreprocess and the behaviour of its reader, 6.0 to 9.1.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from headrace._core.text import quoted
from headrace.config.app.keys import AppGroup
from headrace.config.app.reader import AppReader, FoundGroup
from headrace.config.app.reasons import HARDWARE, Reason
from headrace.config.document import Document, Group, report
from headrace.config.enums import ColorFormat, ScalingFilter, TensorOrder
from headrace.config.key import Key
from headrace.config.paths import resolve
from headrace.config.reading import read_bytes, read_document
from headrace.config.values import INT_MAX, Kind
from headrace.custom.guard.options import GuardOptions
from headrace.infer.geometry import Rect
from headrace.pipeline.preparation.rules import (
    ALL_SOURCES,
    CUSTOM_ORDER,
    DATA_TYPES,
    PreparationGroup,
    PreparationRules,
)

STANDARD_LIBRARY = "libcustom2d_preprocess.so"
STANDARD_FUNCTION = "CustomTensorPreparation"
GUARDS = ("always", "never")
_TRANSFORMATIONS = ("CustomTransformation", "CustomAsyncTransformation")
_USER = "user-configs"
_FRAME_COLOR, _OBJECT_COLOR = (0.0, 1.0, 0.0, 1.0), (0.0, 1.0, 1.0, 1.0)
_FREE = Reason("info", "memory is taken as it is needed")


def _key(name: str, kind: Kind, **more: Any) -> Key:
    return Key(name=name, group="preprocess", kind=kind, default=None, meaning="", **more)


def _keys(*keys: Key) -> dict[str, Key]:
    return {key.name: key for key in keys}


def _size(name: str) -> Key:
    return _key(name, Kind.INT, low=1, high=65535)


def _bound(name: str) -> Key:
    return _key(f"input-object-{name}", Kind.INT, low=0, high=INT_MAX)


_INT, _INTS, _FLAG, _TEXT = Kind.INT, Kind.INTS, Kind.INT_FLAG, Kind.STRING
_PROPERTY = AppGroup(
    "property",
    re.compile("property"),
    _keys(
        _key("enable", _FLAG),
        _key("unique-id", _INT, low=0, high=INT_MAX),
        _key("target-unique-ids", _INTS, low=0),
        _key("operate-on-gie-id", _INT, low=-1, high=INT_MAX),
        _key("process-on-frame", _FLAG),
        _size("processing-width"),
        _size("processing-height"),
        _key("network-input-order", _INT, low=0, high=CUSTOM_ORDER),
        _key("network-input-shape", _INTS, low=1),
        _key("network-color-format", _INT, low=0, high=2),
        _key("tensor-data-type", _INT, low=0, high=max(DATA_TYPES)),
        _key("tensor-name", _TEXT),
        _key("maintain-aspect-ratio", _FLAG),
        _key("symmetric-padding", _FLAG),
        _key("scaling-filter", _INT, low=0, high=6),
        _key("custom-lib-path", _TEXT),
        _key("custom-tensor-preparation-function", _TEXT),
        _key("custom-lib-guard", _TEXT, extension=True),
        _key("custom-lib-guard-timeout", Kind.FLOAT, low=0, extension=True),
        _key("custom-lib-guard-restarts", _INT, low=0, high=INT_MAX, extension=True),
    ),
    unused={
        "gpu-id": HARDWARE,
        "scaling-pool-memory-type": HARDWARE,
        "scaling-pool-compute-hw": HARDWARE,
        "scaling-buf-pool-size": _FREE,
        "tensor-buf-pool-size": _FREE,
    },
    switched=False,
)
_REGIONS = re.compile(r"roi-params-src-([0-9]+)")
_GROUP = AppGroup(
    "group-N",
    re.compile("group-[0-9]+"),
    _keys(
        _key("src-ids", _INTS, low=ALL_SOURCES),
        _key("process-on-roi", _FLAG),
        _key("process-on-all-objects", _FLAG),
        _key("operate-on-class-ids", _INTS, low=-1),
        *map(_bound, ("min-width", "min-height", "max-width", "max-height")),
        _key("interval", _INT, low=0, high=INT_MAX),
        _key("draw-roi", _FLAG),
        _key("roi-color", Kind.FLOATS, low=0, high=1, counts=(4,)),
        _key("custom-input-transformation-function", _TEXT),
    ),
    (_REGIONS, _key("roi-params-src-N", _INTS, low=0)),
    switched=False,
)


def load_preparation(path: str | Path) -> PreparationRules:
    """Read a config file of `nvdspreprocess`.

    Beyond the original, `custom-lib-path` may be a Python file: its function gets the scaled
    images and returns the tensor, see `TensorPreparer`. C++ libraries run in a worker process;
    `custom-lib-guard`, `-timeout` and `-restarts` are keys of Headrace's own.

    Raises:
        ConfigError: it cannot be read, or something in it is refused.
    """
    path = Path(path)
    document = read_document(read_bytes(path), path)
    rules = None if document.problems else _Reader(document).run()
    report(path, document.problems)
    assert rules is not None  # else there are problems
    return rules


class _Reader:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.reader = AppReader(document)

    def run(self) -> PreparationRules | None:
        document = self.document
        top: FoundGroup | None = None
        pairs: list[tuple[Group, FoundGroup]] = []
        for group in document.groups.values():
            if group.name == "property":
                top = self.reader.read(_PROPERTY, group)
            elif _GROUP.pattern.fullmatch(group.name):
                read = self.reader.read(_GROUP, group)
                assert read is not None  # it has no switch
                pairs.append((group, read))
            elif group.name != _USER:
                text = f"[{quoted(group.name)}] is not a group of this file and has no effect"
                document.remark(group.line, text, code="unknown-key")
        self.reader.tell_unused()
        if top is None:
            document.refuse(1, "the file has no group [property].", "[property] and [group-0]")
            return None
        of_objects = not top.get("process-on-frame", 1)
        groups = [self._group(*pair, of_objects=of_objects) for pair in pairs]
        if not pairs:
            document.refuse(1, "the file has no group [group-0].", "[group-0] with src-ids")
        return self._rules(top, groups, of_objects)

    def _rules(
        self, top: FoundGroup, groups: list[PreparationGroup], of_objects: bool
    ) -> PreparationRules | None:
        document = self.document
        for key in ("processing-width", "processing-height", "network-input-shape", "tensor-name"):
            if key not in top.values:
                line = document.groups["property"].line
                document.refuse(line, f"[property] has no {key}.", f"{key} in [property]")
        library = self._library(top)
        order = top.get("network-input-order", 0)
        color = ColorFormat(top.get("network-color-format", 0))
        width, height = top.get("processing-width", 1), top.get("processing-height", 1)
        shape: tuple[int, ...] = top.get("network-input-shape", ())
        if library is None and not document.problems:
            self._check_shape(top, order, color, (height, width))
        guard = self._guard(top)
        user, scale, offsets, mean_file = self._user_config()
        if document.problems:
            return None
        return PreparationRules(
            enabled=bool(top.get("enable", 1)),
            target_ids=top.get("target-unique-ids", ()),
            unique_id=top.get("unique-id", 0),
            of_objects=of_objects,
            operate_on=top.get("operate-on-gie-id", -1),
            width=width,
            height=height,
            shape=shape,
            order=order,
            color_format=color,
            dtype=DATA_TYPES[top.get("tensor-data-type", 0)],
            maintain_aspect_ratio=bool(top.get("maintain-aspect-ratio")),
            symmetric_padding=bool(top.get("symmetric-padding")),
            scaling_filter=ScalingFilter(top.get("scaling-filter", 0)),
            scale=scale,
            offsets=offsets,
            mean_file=mean_file,
            tensor_name=top.get("tensor-name"),
            library=library,
            function=top.get("custom-tensor-preparation-function", STANDARD_FUNCTION),
            guard=guard,
            user_config=user,
            groups=tuple(groups),
            where=str(document.path),
            notices=tuple(n for _, n in sorted(document.notices, key=lambda pair: pair[0])),
        )

    def _library(self, top: FoundGroup) -> Path | None:
        """The user's file to use; None for the standard preparation."""
        written: str | None = top.get("custom-lib-path")
        function = top.get("custom-tensor-preparation-function", STANDARD_FUNCTION)
        if written is not None and Path(written).name != STANDARD_LIBRARY:
            path = resolve(written, self.document.path)
            if path.is_file():
                return path
            self._refuse(
                top,
                "custom-lib-path",
                f"there is no file {path}.",
                f"a C++ library, a Python file, or {STANDARD_LIBRARY}, whose work Headrace does",
            )
        elif function != STANDARD_FUNCTION:
            self._refuse(
                top,
                "custom-tensor-preparation-function",
                f"{STANDARD_LIBRARY} has no function {function} that Headrace knows.",
                STANDARD_FUNCTION,
            )
        return None

    def _guard(self, top: FoundGroup) -> GuardOptions | None:
        """Limits of the worker of a C++ library; None where the file wants none."""
        mode = top.get("custom-lib-guard", GUARDS[0])
        if mode not in GUARDS:
            problem = f"{quoted(mode)} is none."
            self._refuse(top, "custom-lib-guard", problem, " or ".join(GUARDS))
        plain = GuardOptions()
        options = GuardOptions(
            timeout_s=top.get("custom-lib-guard-timeout", plain.timeout_s),
            restarts=top.get("custom-lib-guard-restarts", plain.restarts),
        )
        return options if mode == "always" else None

    def _check_shape(
        self, top: FoundGroup, order: int, color: ColorFormat, size: tuple[int, int]
    ) -> None:
        """The standard preparation makes images: the shape must be theirs."""
        shape = top.get("network-input-shape")
        if order == CUSTOM_ORDER:
            self._refuse(
                top,
                "network-input-order",
                f"{STANDARD_LIBRARY} makes planar or interleaved images.",
                "0 (NCHW) or 1 (NHWC)",
            )
            return
        channels = 1 if color is ColorFormat.GRAY else 3
        image = (channels, *size) if order == TensorOrder.NCHW else (*size, channels)
        if len(shape) != 4 or shape[1:] != image:
            shape_text = ";".join(map(str, (shape[0], *image)))
            self._refuse(
                top,
                "network-input-shape",
                f"{';'.join(map(str, shape))} is not the shape of the images that"
                " processing-width, processing-height and network-color-format make.",
                f"network-input-shape={shape_text}",
            )

    def _refuse(
        self, top: FoundGroup, key: str, problem: str, expected: str, fix: str | None = None
    ) -> None:
        self.document.refuse(top.line(key), f"{key}: {problem}", expected, fix)

    def _user_config(self) -> tuple[dict[str, str], float, tuple[float, ...], Path | None]:
        """The texts of `[user-configs]`, and the values that the standard preparation reads."""
        group = self.document.groups.get(_USER)
        entries = {} if group is None else group.last()
        numbers = {
            "pixel-normalization-factor": _key("pixel-normalization-factor", Kind.FLOAT),
            "offsets": _key("offsets", Kind.FLOATS),
        }
        values = {k: self.reader.value(entries[k], v) for k, v in numbers.items() if k in entries}
        scale = values.get("pixel-normalization-factor")
        text = entries["mean-file"].text.strip() if "mean-file" in entries else ""
        return (
            {key: entry.text.strip() for key, entry in entries.items()},
            1.0 if scale is None else float(np.float32(scale)),
            tuple(values.get("offsets") or ()),
            resolve(text, self.document.path) if text else None,
        )

    def _group(self, group: Group, settings: FoundGroup, *, of_objects: bool) -> PreparationGroup:
        document = self.document
        sources: tuple[int, ...] = settings.get("src-ids", ())
        if not sources:
            document.refuse(group.line, f"[{group.name}] has no src-ids.", "src-ids=0;1, or -1")
        elif ALL_SOURCES in sources:
            sources = (ALL_SOURCES,)
        transformation = settings.get("custom-input-transformation-function")
        if transformation and transformation not in _TRANSFORMATIONS:
            text = f"custom-input-transformation-function={quoted(transformation)} is not called:"
            document.remark(
                settings.line("custom-input-transformation-function"),
                f"{text} Headrace scales itself",
            )
        whole = (
            settings.get("process-on-all-objects")
            if of_objects
            else not settings.get("process-on-roi")
        )
        color = settings.get("roi-color", _OBJECT_COLOR if of_objects else _FRAME_COLOR)

        def pair(bound: str) -> tuple[int, int]:
            return tuple(settings.get(f"input-object-{bound}-{s}", 0) for s in ("width", "height"))

        return PreparationGroup(
            sources=sources,
            regions=None if whole else self._regions(group, settings, sources),
            classes=() if (c := settings.get("operate-on-class-ids", ())) == (-1,) else c,
            min_size=pair("min"),
            max_size=pair("max"),
            interval=settings.get("interval", 0),
            color=tuple(color) if settings.get("draw-roi", 1) else None,
        )

    def _regions(
        self, group: Group, settings: FoundGroup, sources: tuple[int, ...]
    ) -> dict[int, tuple[Rect, ...]]:
        """Regions by source; the first ones are those of every source where `src-ids=-1`."""
        document = self.document
        regions: dict[int, tuple[Rect, ...]] = {}
        for key, entry in settings.entries.items():
            match = _REGIONS.fullmatch(key)
            if match is None:
                continue
            numbers = settings.values[key]
            if len(numbers) % 4 or not all(numbers[2::4]) or not all(numbers[3::4]):
                text = f"{document.written(entry)} is no list of regions."
                document.refuse(entry.line, text, "left;top;width;height;… of each, in pixels")
                continue
            rects = zip(*(iter(map(float, numbers)),) * 4, strict=True)
            source_regions = tuple(Rect(*rect) for rect in rects)
            if sources == (ALL_SOURCES,):
                regions.setdefault(ALL_SOURCES, source_regions)
            else:
                regions[int(match[1])] = source_regions
        missing = [s for s in sources if s not in regions]
        if missing and not document.problems:
            keys = ", ".join(f"roi-params-src-{max(0, s)}" for s in missing)
            document.refuse(group.line, f"[{group.name}] has no {keys}.", "regions per source")
        return regions
