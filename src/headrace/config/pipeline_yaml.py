"""Headrace's own pipeline file: YAML with sources, models, tracker, tiler, osd and sinks.

The keys are those of `pipeline_keys`. Every value has a short form (a text) and a long one (a
mapping). Unknown keys are refused: there is no older program to be lenient with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from headrace._core.named_settings import split_settings
from headrace._core.near import did_you_mean, nearest
from headrace._core.text import quoted
from headrace._core.urls import has_login, url_scheme
from headrace.config.document import Document
from headrace.config.enums import NamedValue
from headrace.config.field_checks import TRACKER_NAME, color_trouble, setting_trouble, text_trouble
from headrace.config.key import Key
from headrace.config.origin import Origin
from headrace.config.paths import absolute_uri, is_url, resolve, uri_trouble
from headrace.config.pipeline_keys import (
    COLORS,
    MAX_ITEMS,
    MESSAGE_SCHEMES,
    PIPELINE_SECTIONS,
    RECEIVED_SCHEMES,
    SECTIONS,
    SINK_KINDS,
    STREAM_SCHEMES,
    TOP_KEYS,
    Section,
)
from headrace.config.values import BadValueError, Kind, Values, parse_yaml
from headrace.config.yaml_nodes import MapNode, Node, SeqNode, TextNode, read_tree

Item: TypeAlias = tuple[Values, dict[str, Origin]]

_FLAGS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_GRID = re.compile(r"([0-9]{1,3}) ?[x*×] ?([0-9]{1,3})")
_TO_URIS = {"messages": "uri: mqtt://HOST/TOPIC", "publish": "uri: rtsp://HOST/PATH"}
_SINK_PREFIX = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):(?!//)")
_SINK_ALIASES = {"mp4": "video", "image": "images", "json": "coco", "none": "fake"}
_MAX_SUGGESTIONS = 50
_MAX_PROBLEMS = 200
_MAX_VALUES = 200_000  # with aliases a small file can name more than fits into memory


class Parts:
    """The content of a pipeline file by section, each item with the origins of its values."""

    def __init__(self) -> None:
        self.items: dict[str, list[Item]] = {name: [] for name in SECTIONS}
        self.top: Values = {}
        self.origins: dict[str, Origin] = {}


def parse_pipeline(data: bytes, document: Document) -> Parts:
    """Read a pipeline file; refusals are in `document.problems`."""
    parts = Parts()
    tree = read_tree(data, document)
    if tree is not None:
        _Interpreter(document, parts).run(tree)
    return parts


class _Interpreter:
    def __init__(self, document: Document, parts: Parts) -> None:
        self.document = document
        self.parts = parts
        self.unknown = 0
        self.values = 0

    def run(self, tree: MapNode) -> None:
        document = self.document
        for key, node in tree.pairs:
            name = key.text
            if name not in PIPELINE_SECTIONS:
                self._unknown(key, PIPELINE_SECTIONS, "a pipeline file")
                continue
            self.parts.origins[name.replace("-", "_")] = self._origin(key, node)
            if name in TOP_KEYS:
                self._put(self.parts.top, TOP_KEYS[name], node)
                continue
            section = SECTIONS[name]
            nodes: Iterable[Node] = (node,)
            if section.many and isinstance(node, SeqNode):
                nodes = node.items
                if len(node.items) > MAX_ITEMS:
                    document.refuse(
                        key.line, f"{name} has {len(node.items)} items.", f"{MAX_ITEMS} at most"
                    )
                    continue
            elif isinstance(node, TextNode) and node.empty:
                if name == "sources":
                    self.parts.origins.pop("sources")
                continue
            for item in nodes:
                self.values += _size(item)
                if self.values > _MAX_VALUES:
                    document.refuse(item.line, f"the file holds more than {_MAX_VALUES} values.")
                if len(document.problems) >= _MAX_PROBLEMS or self.values > _MAX_VALUES:
                    return
                self._item(section, item)
        if self.parts.top.get("keep_open"):
            return
        if "sources" not in self.parts.origins:
            document.refuse(
                1,
                "the pipeline has no sources.",
                "sources: with a list, or keep-open: true",
            )
        elif not self.parts.items["sources"] and not document.problems:
            line = self.parts.origins["sources"].line or 1
            document.refuse(line, "sources is an empty list.", "at least one source")

    def _item(self, section: Section, node: Node) -> None:
        document = self.document
        values: Values = {}
        origins: dict[str, Origin] = {}
        before = len(document.problems)
        if isinstance(node, SeqNode):
            what = f"{section.short_says}, or a mapping with {', '.join(section.keys)}"
            document.refuse(node.line, f"{section.noun} is a list.", what)
            return
        if isinstance(node, TextNode):
            self._short(section, node, values, origins)
        else:
            for key, value in node.pairs:
                known = section.keys.get(key.text)
                if known is None:
                    self._unknown(key, tuple(section.keys), section.noun)
                elif self._put(values, known, value):
                    origins[known.field or ""] = self._origin(key, value)
        if len(document.problems) > before:
            return
        if section.name == "sinks":
            self._sink(values, node.line)
        elif section.name == "tracker":
            self._tracker(values, node.line)
        elif section.required and section.required not in values:
            document.refuse(
                node.line,
                f"{section.noun} has no {section.required}.",
                f"{section.required}: {section.short_says}",
            )
        if len(document.problems) == before:
            self.parts.items[section.name].append((values, origins))

    def _short(
        self, section: Section, node: TextNode, values: Values, origins: dict[str, Origin]
    ) -> None:
        """An item that is a text."""
        document = self.document
        field = section.short or ""
        fields: Values = {}
        if node.empty:
            document.refuse(node.line, f"{section.noun} has no value.", section.short_says)
            return
        try:
            if section.name == "tiler":
                for name, text in _grid(node.text, section).items():
                    self._put(fields, section.keys[name], TextNode(text, node.line))
            elif section.name == "tracker":
                fields = tracker_text(node.text, document.path)
            elif section.name == "sinks":
                fields = sink_text(node.text, document.path)
            else:
                self._put(fields, section.keys[field], node)
        except BadValueError as bad:
            document.refuse(
                node.line, f"'{quoted(node.text)}' is not {bad.noun}.", bad.expected, bad.fix
            )
            return
        values.update(fields)
        origin = Origin("file", document.path, node.line, section.name, node.text)
        origins.update(dict.fromkeys(fields, origin))

    def _sink(self, values: Values, line: int) -> None:
        uri = values.get("uri")
        if values.get("kind") == "fake":
            values.pop("path", None)
            values.pop("uri", None)
        elif uri is not None:
            kind = uri_kind(uri)
            if values.get("path") is not None or values.setdefault("kind", kind) != kind:
                self.document.refuse(
                    line, "a sink with a uri has a path, or another kind.", f"kind: {kind}"
                )
        elif (fix := _TO_URIS.get(values.get("kind", ""))) is not None:
            self.document.refuse(line, f"a sink of kind {values['kind']} has no uri.", fix)
        elif values.get("path") is None:
            self.document.refuse(line, "a sink has no path.", "path: where to write, or kind: fake")

    def _tracker(self, values: Values, line: int) -> None:
        name, config = values.get("name"), values.get("config")
        if (name is None) == (config is None):
            has = "neither name nor config" if name is None else "a name and a config"
            expected = "one of both: name: iou, or config: tracker.yml"
            self.document.refuse(line, f"the tracker has {has}.", expected)

    # --- one value --------------------------------------------------------------------------------

    def _put(self, values: Values, key: Key, node: Node) -> bool:
        """Store the value of a key; False when it is refused."""
        try:
            values[key.field or ""] = read_value(key, node, self.document.path)
        except BadValueError as bad:
            written = (
                f": {quoted(node.text)}" if isinstance(node, TextNode) and key.name != "uri" else ""
            )
            numeric = key.kind in (Kind.INT, Kind.FLOAT) and key.enum is None
            expected = key.expected() if numeric else bad.expected
            self.document.refuse(
                node.line, f"{key.name}{written} is not {bad.noun}.", expected, bad.fix
            )
            return False
        return True

    def _origin(self, key: TextNode, node: Node) -> Origin:
        text = node.text if isinstance(node, TextNode) else None
        return Origin("file", self.document.path, key.line, key.text, text)

    def _unknown(self, key: TextNode, names: Iterable[str], what: str) -> None:
        names = list(names)
        self.unknown += 1
        near = nearest(key.text, names) if self.unknown <= _MAX_SUGGESTIONS else None
        self.document.refuse(
            key.line,
            f"{quoted(key.text)} is not a key of {what}.",
            f"one of {', '.join(names)}",
            did_you_mean(near),
        )


def _grid(text: str, section: Section) -> dict[str, str]:
    grid = _GRID.fullmatch(text.strip())
    if not grid:
        raise BadValueError("a grid", section.short_says)
    return {"rows": grid[1], "columns": grid[2]}


def _size(item: Node) -> int:
    """How many values an item has, as deep as one can be read."""
    if not isinstance(item, MapNode):
        return 1
    sizes = [
        len(value.pairs) if isinstance(value, MapNode) else len(value.items)
        for _, value in item.pairs
        if not isinstance(value, TextNode)
    ]
    return 1 + len(item.pairs) + sum(sizes)


def read_value(key: Key, node: Node, path: Path) -> Any:
    """The value of one key of a pipeline file."""
    if key.name in COLORS:
        return _mapping(
            node, key, _class_number, lambda n: _list(n, _READ[Kind.FLOAT]), color_trouble
        )
    if key.name == "settings":
        return _mapping(node, key, lambda s: s.text, _text, setting_trouble)
    if key.kind in (Kind.INTS, Kind.FLOATS):
        item = Kind.INT if key.kind is Kind.INTS else Kind.FLOAT
        value: Any = _list(node, _READ[item])
    else:
        text = _text(node)
        if key.enum is not None:
            value = _named(key.enum, text)
        else:
            value = _READ[key.kind](text) if key.kind in _READ else _texts(key, text, path)
    trouble = key.trouble(value)
    if trouble:
        raise BadValueError(trouble, key.expected())
    return value


def _texts(key: Key, text: str, path: Path) -> Any:
    if key is SECTIONS["sinks"].keys["uri"]:
        return sink_uri(text)
    if key is SECTIONS["consumers"].keys["uri"]:
        return _consumer_uri(text)
    if key.name == "uri":
        trouble = uri_trouble(text)
        if trouble:
            raise BadValueError(trouble, "a path or URL")
        return absolute_uri(text, path)
    trouble = text_trouble(text)
    if trouble:
        raise BadValueError(trouble, f"a {key.kind.value}")
    if key.kind is Kind.PATH:
        return resolve(text, path)
    return sink_path(text, path) if key.name == "path" else text


def _text(node: Node) -> str:
    if not isinstance(node, TextNode):
        kind = "a mapping" if isinstance(node, MapNode) else "a list"
        raise BadValueError(f"one value but {kind}", "one value")
    if node.empty:
        raise BadValueError("given", "a value", "write one, or remove the line")
    return node.text


def _flag(text: str) -> bool:
    value = _FLAGS.get(text.strip().lower())
    if value is None:
        raise BadValueError("a flag", "true or false")
    return value


def _number(kind: Kind) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return parse_yaml(kind, text, loose=False)
        except BadValueError as bad:
            raise BadValueError(bad.noun, bad.expected.removesuffix(", unquoted")) from None

    return read


_READ: dict[Kind, Callable[[str], Any]] = {
    Kind.FLAG: _flag,
    Kind.INT: _number(Kind.INT),
    Kind.FLOAT: _number(Kind.FLOAT),
}


def _named(enum: type[NamedValue], text: str) -> Any:
    for member in enum:
        if text.strip().lower() in (str(member.value), member.name.lower()):
            return member
    raise BadValueError(enum.noun(), f"one of {', '.join(member.name.lower() for member in enum)}")


def _list(node: Node, read: Callable[[str], object]) -> tuple[Any, ...]:
    """A list, `1;2;3` as in nvinfer's files, or one item."""
    if isinstance(node, SeqNode):
        if len(node.items) > 65536:
            raise BadValueError("a list of a usable length", "65536 items at most")
        return tuple(read(_text(item)) for item in node.items)
    text = _text(node).strip()
    return tuple(read(item.strip()) for item in text.removesuffix(";").split(";"))


def _class_number(key: TextNode) -> int:
    if key.text == "all":
        return -1
    number: int = _READ[Kind.INT](key.text)
    if number < 0:
        raise BadValueError("about a class", "a class number, or all")
    return number


def _mapping(
    node: Node,
    key: Key,
    name_of: Callable[[TextNode], object],
    value_of: Callable[[Node], object],
    trouble_of: Callable[[Any, Any], str | None],
) -> Mapping[Any, Any]:
    if not isinstance(node, MapNode):
        raise BadValueError("a mapping", f"a mapping: {key.meaning}")
    mapping = {}
    for name, value in node.pairs:
        number = name_of(name)
        mapping[number] = value_of(value)
        trouble = trouble_of(number, mapping[number])
        if trouble:
            raise BadValueError(trouble, f"a mapping: {key.meaning}")
    return mapping


# --- texts with a grammar of their own ------------------------------------------------------------


def tracker_text(text: str, path: Path) -> Values:
    """The fields of a `TrackerSpec` from `iou`, `iou:max_age=30,min_iou=0.3` or a YAML file."""
    text = text.strip()
    if text.lower().endswith((".yml", ".yaml")):
        return {"config": resolve(text, path)}
    name, settings = split_settings(text)
    if not TRACKER_NAME.fullmatch(name) or (":" in text and not settings):
        raise BadValueError("a tracker", "a name such as iou, iou:max_age=30, or a YAML file")
    for setting, value in settings.items():
        if trouble := setting_trouble(setting, value):
            raise BadValueError(trouble, "settings such as iou:max_age=30,min_iou=0.3")
    return {"name": name, "settings": settings} if settings else {"name": name}


def sink_text(text: str, path: Path) -> Values:
    """The fields of a `SinkSpec` from `out.mp4`, `images/`, `kitti:labels` or `fake`."""
    if text in ("fake", "none"):
        return {"kind": "fake"}
    if url_scheme(text) in (*MESSAGE_SCHEMES, *STREAM_SCHEMES):
        return {"kind": uri_kind(text), "uri": sink_uri(text)}
    prefix = _SINK_PREFIX.match(text)
    if not prefix:
        fields: Values = {"path": sink_path(text, path)}
        if text.endswith("/"):
            fields["kind"] = "images"
        return fields
    kind = _SINK_ALIASES.get(prefix[1].lower(), prefix[1].lower())
    if kind not in SINK_KINDS:
        near = nearest(kind, SINK_KINDS)
        raise BadValueError(
            f"an output: {quoted(prefix[1])} is no kind of it",
            f"a path, or kind:path with one of {', '.join(SINK_KINDS)}",
            f"did you mean {near}:?" if near else None,
        )
    rest = text[prefix.end() :]
    if kind in _TO_URIS and (url_scheme(rest) is None or uri_kind(rest) != kind):
        raise BadValueError(f"an output: {kind} needs a URL", _TO_URIS[kind])
    if kind in _TO_URIS:
        return {"kind": kind, "uri": sink_uri(rest)}
    return {"kind": kind} if kind == "fake" else {"kind": kind, "path": sink_path(rest, path)}


def uri_kind(uri: str) -> str:
    """The kind of the output that writes to `uri`: a stream, or messages."""
    return "publish" if url_scheme(uri) in STREAM_SCHEMES else "messages"


def sink_uri(text: str) -> str:
    """The URL of an output, as it is.

    Raises:
        BadValueError: it is none, or one for messages holds a user or password.
    """
    trouble = text_trouble(text)
    if trouble is None and url_scheme(text) not in (*MESSAGE_SCHEMES, *STREAM_SCHEMES):
        trouble = "a URL that messages or a stream go to"
    try:
        if trouble is None and uri_kind(text) == "messages" and has_login(text):
            trouble = "free of a user and password"
    except ValueError as error:
        trouble = f"a URL ({error})"
    if trouble:
        raise BadValueError(
            trouble, f"one of {', '.join(MESSAGE_SCHEMES)}, as mqtt://HOST/TOPIC; "
            "HEADRACE_<PROTOCOL>_USER and HEADRACE_<PROTOCOL>_PASSWORD hold a login. "
            f"For a stream {', '.join(STREAM_SCHEMES)}, as rtsp://HOST/PATH",
        )  # fmt: skip
    return text


def _consumer_uri(text: str) -> str:
    trouble = text_trouble(text)
    try:
        if trouble is None and url_scheme(text) not in RECEIVED_SCHEMES:
            trouble = "a URL that messages come from"
        elif trouble is None and has_login(text):
            trouble = "free of a user and password"
    except ValueError as error:
        trouble = f"a URL ({error})"
    if trouble:
        raise BadValueError(
            trouble, f"one of {', '.join(RECEIVED_SCHEMES)}, as mqtt://HOST/TOPIC,TOPIC; "
            "HEADRACE_<PROTOCOL>_USER and HEADRACE_<PROTOCOL>_PASSWORD hold a login",
        )  # fmt: skip
    return text


def sink_path(text: str, path: Path) -> Path:
    """Where a sink writes; `-` is standard output."""
    trouble = text_trouble(text)
    if trouble:
        raise BadValueError(trouble, "a path")
    if is_url(text):
        raise BadValueError(
            f"a file: streams are written to {', '.join(STREAM_SCHEMES)} alone, under uri",
            "a path, or kind:path",
        )
    return Path(text) if text == "-" else resolve(text, path)
