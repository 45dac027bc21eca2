"""The config file of `nvdsanalytics`, INI or YAML, as it is.

Facts: the manual of Gst-nvdsanalytics and the behaviour of its reader, 5.0 to 9.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.text import quoted
from headrace.config.app.keys import AppGroup
from headrace.config.app.reader import AppReader, FoundGroup
from headrace.config.app.reasons import Reason
from headrace.config.document import Document, Group, report
from headrace.config.key import Key
from headrace.config.reading import read_bytes, read_document
from headrace.config.values import INT_MAX, Kind
from headrace.meta.figures import Point
from headrace.pipeline.analytics.rules import (
    ALL_SOURCES,
    AnalyticsRules,
    CrossingMode,
    Crowd,
    Drawn,
    Heading,
    Line,
    Region,
    SourceRules,
)

_DRAWN: tuple[Drawn, ...] = ("nothing", "shapes", "counts")
_LATE = Reason("warning", "like the original, a place is crowded at once, not after a time")
_SAME = Reason("info", "directions are found in one way")


def _key(name: str, kind: Kind, **more: Any) -> Key:
    return Key(name=name, group="analytics", kind=kind, default=None, meaning="", **more)


def _group(name: str, names: str, points: Key | None, *keys: Key, **unused: Reason) -> AppGroup:
    number = r"-([0-9]+|all)" if points else ""
    numbered = None if points is None else (re.compile(rf"{points.name}-(.+)"), points)
    common = () if points is None else (_key("enable", Kind.INT_FLAG), _CLASSES)
    return AppGroup(
        name,
        re.compile(names + number),
        {key.name: key for key in (*common, *keys)},
        numbered,
        {key.replace("_", "-"): reason for key, reason in unused.items()},
    )


_CLASSES = _key("class-id", Kind.INTS)
_MODE = _key("mode", Kind.STRING, choices=tuple(CrossingMode))
_CORNERS = _key("roi", Kind.INTS, low=0)
_PROPERTY = _group(
    "property",
    "property",
    None,
    _key("enable", Kind.INT_FLAG),
    _key("config-width", Kind.INT, low=1, high=65535),
    _key("config-height", Kind.INT, low=1, high=65535),
    _key("osd-mode", Kind.INT, low=0, high=2),
    _key("display-font-size", Kind.INT, low=1, high=255),
    _key("display-obj-cnt", Kind.INT_FLAG),
    _key("obj-cnt-win-in-ms", Kind.INT, low=0, high=1_000_000_000),
)
_GROUPS = (
    _PROPERTY,
    _group(
        "roi-filtering-stream-N",
        "roi-filtering-stream",
        _CORNERS,
        _key("inverse-roi", Kind.INT_FLAG),
    ),
    _group(
        "overcrowding-stream-N",
        "overcrowding-stream",
        _CORNERS,
        _key("object-threshold", Kind.INT, low=0, high=INT_MAX),
        time_threshold=_LATE,
    ),
    _group(
        "line-crossing-stream-N",
        "line-crossing-stream",
        _key("line-crossing", Kind.INTS, low=0, counts=(4, 8)),
        _key("extended", Kind.INT_FLAG),
        _MODE,
    ),
    _group(
        "direction-detection-stream-N",
        "direction-detection-stream",
        _key("direction", Kind.INTS, low=0, counts=(4,)),
        mode=_SAME,
    ),
)


def load_rules(path: str | Path) -> AnalyticsRules:
    """Read a config file of `nvdsanalytics`.

    Beyond the original, `mode=exact` finds every crossing, a line may do without a direction (4
    numbers instead of 8), and a group for `all` instead of a number is for every source.

    Raises:
        ConfigError: it cannot be read, or something in it is refused.
    """
    path = Path(path)
    document = read_document(read_bytes(path), path)
    rules = None if document.problems else _Reader(document).run()
    report(path, document.problems)
    if rules is None:
        raise ConfigError("the file holds no groups", where=str(path), expected="[property]")
    return rules


class _Reader:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.reader = AppReader(document)
        self.sources: dict[int, dict[str, dict[str, Any]]] = {}

    def run(self) -> AnalyticsRules | None:
        document = self.document
        top: FoundGroup | None = None
        for group in document.groups.values():
            kind = next((k for k in _GROUPS if k.pattern.fullmatch(group.name)), None)
            if kind is None:
                text = f"[{quoted(group.name)}] is not a group of this file and has no effect"
                document.remark(group.line, text, code="unknown-key")
            elif kind is _PROPERTY:
                top = self.reader.read(kind, group)
                if top is None:
                    document.remark(group.line, "nothing is counted: [property] has no enable=1")
            elif (settings := self.reader.read(kind, group)) is not None:
                self._rules(kind, group, settings)
        self.reader.tell_unused()
        off = top is None and "property" in document.groups
        size = None if off else self._size(top)
        if off:
            return AnalyticsRules(sources={}, where=str(document.path), notices=self._notices())
        if document.problems or top is None:
            return None
        sources = {i: SourceRules(*map(_tuple, kinds.values())) for i, kinds in self._all().items()}
        return AnalyticsRules(
            sources=sources,
            size=size,
            drawn=_DRAWN[top.get("osd-mode", 2)],
            text_size=top.get("display-font-size", 12),
            draw_classes=bool(top.get("display-obj-cnt")),
            window_ms=top.get("obj-cnt-win-in-ms", 0),
            where=str(document.path),
            notices=self._notices(),
        )

    def _notices(self) -> tuple[Finding, ...]:
        return tuple(n for _, n in sorted(self.document.notices, key=lambda pair: pair[0]))

    def _all(self) -> dict[int, dict[str, dict[str, Any]]]:
        return dict(sorted(self.sources.items()))

    def _size(self, top: FoundGroup | None) -> tuple[int, int] | None:
        width = None if top is None else top.get("config-width")
        height = None if top is None else top.get("config-height")
        if width is not None and height is not None:
            return width, height
        if not self.document.problems:
            line = self.document.groups["property"].line if top is not None else 1
            missing = "config-width and config-height" if top is not None else "group [property]"
            self.document.refuse(
                line,
                f"the file has no {missing}.",
                "the size of the images that the coordinates are for: config-width=1920 and "
                "config-height=1080 in [property]",
            )
        return None

    def _rules(self, kind: AppGroup, group: Group, settings: FoundGroup) -> None:
        number = group.name.rpartition("-")[2]
        source = ALL_SOURCES if number == "all" else int(number)
        rules = self.sources.setdefault(source, {k.name: {} for k in _GROUPS[1:]})[kind.name]
        numbered = kind.numbered
        assert numbered is not None
        classes = settings.get("class-id", ())
        for key, entry in settings.entries.items():
            match = numbered[0].fullmatch(key)
            if match is None or key in kind.keys:
                continue
            numbers = tuple(map(float, settings.values[key]))
            if len(numbers) % 2:
                written = self.document.written(entry)
                self.document.refuse(
                    entry.line, f"{written} has {len(numbers)} numbers.", "x;y;x;y"
                )
                continue
            pairs = tuple(zip(numbers[::2], numbers[1::2], strict=True))
            try:
                rule = _MAKE[kind.name](match[1], classes, pairs, settings)
                SourceRules(**{_FIELDS[kind.name]: (rule,)})
            except ConfigError as error:
                self.document.refuse(
                    entry.line,
                    f"{self.document.written(entry)}: {error:brief}.",
                    error.finding.expectation,
                )
            else:
                rules[match[1]] = rule


def _line(
    name: str, classes: tuple[int, ...], pairs: tuple[Point, ...], settings: FoundGroup
) -> Line:
    # the defaults of the original's reader: a line without end, every crossing
    toward = (pairs[0], pairs[1]) if len(pairs) == 4 else None
    return Line(
        name=name,
        classes=classes,
        start=pairs[-2],
        end=pairs[-1],
        toward=toward,
        extended=bool(settings.get("extended", 1)),
        mode=CrossingMode(settings.get("mode", "loose")),
    )


_MAKE: dict[str, Callable[..., Any]] = {
    "roi-filtering-stream-N": lambda name, classes, pairs, group: Region(
        name=name, classes=classes, points=pairs, inverse=bool(group.get("inverse-roi"))
    ),
    "overcrowding-stream-N": lambda name, classes, pairs, group: Crowd(
        name=name, classes=classes, points=pairs, threshold=group.get("object-threshold", 1)
    ),
    "line-crossing-stream-N": _line,
    "direction-detection-stream-N": lambda name, classes, pairs, group: Heading(
        name=name, classes=classes, start=pairs[0], end=pairs[1]
    ),
}
_FIELDS = dict(zip(_MAKE, ("regions", "crowds", "lines", "headings"), strict=True))


def _tuple(rules: dict[str, object]) -> tuple[Any, ...]:
    return tuple(rules.values())
