"""YAML files of the service maker: pipelines of nodes and edges, and lists of sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import ConfigError
from headrace.config.document import Document, report
from headrace.config.reading import read_bytes
from headrace.config.yaml_nodes import MapNode, SeqNode, TextNode, read_tree

if TYPE_CHECKING:
    from headrace.gstreamer.servicemaker.pipeline import Pipeline


@dataclass
class SensorInfo:
    """A source of a list."""

    sensor_id: str = ""
    sensor_name: str = ""
    uri: str = ""


@dataclass
class CameraInfo:
    """A camera of a list; each attribute is a key of the file, with `-` for `_`."""

    camera_type: str = ""
    camera_video_format: str = "NV12"
    camera_width: str = ""
    camera_height: str = ""
    camera_fps_n: str = ""
    camera_fps_d: str = ""
    camera_csi_sensor_id: int | None = None
    camera_v4l2_dev_node: str | None = None
    gpu_id: int = 0
    nvbuf_mem_type: int = 0
    nvvideoconvert_copy_hw: int = 0


@dataclass
class SourceConfig:
    """A list of sources, and the element that opens them.

    Attributes:
        source_type: `nvurisrcbin`, `nvmultiurisrcbin` or `camerabin`.
        source_properties: of that element.
        sensor_list, camera_list: the sources.
    """

    source_type: str = ""
    source_properties: dict[str, object] = field(default_factory=dict)
    sensor_list: list[SensorInfo] = field(default_factory=list)
    camera_list: list[CameraInfo] = field(default_factory=list)

    def load(self, path: str | Path) -> None:
        """Read a file.

        Raises:
            ConfigError: it cannot be read, or lists no source.
        """
        file = _File(Path(path))
        self.sensor_list = [
            SensorInfo(
                *(str(_values(one).get(key, "")) for key in ("sensor-id", "sensor-name", "uri"))
            )
            for one in file.rows("source-list")
        ]
        known = {one.name for one in fields(CameraInfo)}
        for row in file.rows("camera-list"):
            camera = {key.replace("-", "_"): value for key, value in _values(row).items()}
            self.camera_list.append(CameraInfo(**{k: v for k, v in camera.items() if k in known}))
        if not self.sensor_list and not self.camera_list:
            raise ConfigError(
                "no source is listed", where=str(path), expected="source-list: with a uri each"
            )
        config = _child(file.root, "source-config", MapNode) or MapNode(1)
        settings = _values(config)
        default = "camerabin" if self.camera_list else "nvurisrcbin"
        self.source_type = str(settings.get("source-bin", default))
        properties = _child(config, "properties", MapNode)
        self.source_properties = _values(properties) if properties else {}


class _File:
    """A YAML mapping, and errors that name its lines.

    Attributes:
        root: the mapping.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        document = Document(path, "yaml")
        root = read_tree(read_bytes(path), document)
        report(path, document.problems)
        assert root is not None  # else the report raised
        self.root: MapNode = root

    def rows(self, key: str, of: MapNode | None = None) -> Iterator[MapNode]:
        """Go through the mappings of a list; none if the key is missing."""
        sequence = _child(of or self.root, key, SeqNode)
        for row in sequence.items if sequence else ():
            if not isinstance(row, MapNode):
                raise self.error(row.line, f"an item of {key} is no mapping", "keys with values")
            yield row

    def error(self, line: int, problem: str, expected: str) -> ConfigError:
        """Make an error about a line."""
        return ConfigError(problem, where=f"{self._path}:{line}", expected=expected)


def _child(node: MapNode, key: str, kind: type[Any]) -> Any:
    return next((v for k, v in node.pairs if k.text == key and isinstance(v, kind)), None)


def _values(node: MapNode) -> dict[str, Any]:
    """The plain values of a mapping, numbers and truth values as such."""
    return {k.text: _value(v) for k, v in node.pairs if isinstance(v, TextNode)}


def _value(node: TextNode) -> object:
    if not node.plain:
        return node.text
    if node.text.lower() in ("true", "false"):
        return node.text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(node.text)
        except ValueError:
            continue
    return node.text


def build(pipeline: Pipeline, path: Path) -> None:
    """Add the nodes and edges of a file to a pipeline.

    Raises:
        ConfigError: the file cannot be read, or names what is not there.
    """
    file = _File(path)
    body = _child(file.root, "deepstream", MapNode)
    if body is None:
        raise file.error(1, "there is no deepstream: section", "deepstream: with nodes and edges")
    operators: dict[str, tuple[str, dict[str, object]]] = {}
    for row in file.rows("nodes", body):
        named = _values(row)
        missing = [key for key in ("type", "name") if key not in named]
        if missing:
            raise file.error(row.line, f"a node has no {missing[0]}", "type and name")
        kind, name = str(named["type"]), str(named["name"])
        property_map = _child(row, "properties", MapNode)
        properties = _values(property_map) if property_map else {}
        if "." in kind:  # module.operator
            operators[name] = kind, properties
            continue
        try:
            pipeline.add(kind, name, properties)
        except ConfigError as error:
            expected = error.finding.expectation or "a known node"
            raise file.error(row.line, f"{error:brief}", expected) from error
    edges = _child(body, "edges", MapNode)
    for source, value in edges.pairs if edges else ():
        for target in value.items if isinstance(value, SeqNode) else [value]:
            if not isinstance(target, TextNode):
                raise file.error(target.line, "an edge leads to no name", "the name of a node")
            name, out = _place(pipeline, source.text)
            try:
                if target.text in operators:
                    kind, properties = operators[target.text]
                    pipeline.attach(name, kind, target.text, out, properties)
                else:
                    into, pad = _place(pipeline, target.text)
                    pipeline.link((name, into), (out, pad))
            except ConfigError as error:
                expected = error.finding.expectation or "a node of the file"
                raise file.error(target.line, f"{error:brief}", expected) from error


def _place(pipeline: Pipeline, text: str) -> tuple[str, str]:
    """Name of an element, and of the pad that may stand behind a dot."""
    if text in pipeline:
        return text, ""
    name, _, pad = text.rpartition(".")
    return (name, pad) if name in pipeline else (text, "")
