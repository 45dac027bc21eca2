"""`PipelineSpec`: a whole pipeline as a file describes it, every value with its origin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.text import quoted
from headrace._core.urls import has_login, url_scheme
from headrace.config.class_attrs import Rgba, colored
from headrace.config.document import Document, report
from headrace.config.dump import yaml_text
from headrace.config.enums import ProcessMode
from headrace.config.field_checks import check_spec_field, spec_key
from headrace.config.frozen import Frozen
from headrace.config.key import Key
from headrace.config.model_config import ModelConfig
from headrace.config.origin import EffectiveValue, Origin
from headrace.config.overrides import GivenKey, Overrides, distributed
from headrace.config.paths import given_kind, is_stream, missing_hints, safe_uri
from headrace.config.pipeline_keys import (
    COLORS,
    MAX_ITEMS,
    MESSAGE_SCHEMES,
    OVERRIDES,
    RECEIVED_SCHEMES,
    SECTIONS,
    STREAM_SCHEMES,
    TOP_KEYS,
    Section,
)
from headrace.config.values import Kind, Values

if TYPE_CHECKING:
    from headrace.config.pipeline_yaml import Parts


class _Spec(Frozen):
    """The base of the parts; equal when the values are."""

    _section = ""  # of a file; empty for the file itself

    @classmethod
    def _key(cls, field: str) -> Key | None:
        key = spec_key(cls._section, field)
        return None if key is not None and key.kind is Kind.STRINGS else key

    @classmethod
    def _check_field(cls, field: str, value: Any) -> Any:
        return check_spec_field(cls._section, field, value)

    @classmethod
    def read(cls, values: Mapping[str, object], origins: Mapping[str, Origin]) -> Self:
        """Make one from the values of a file, with the place of each."""
        spec = cls(**values)
        spec._origins = dict(origins)
        return spec

    def origin(self, field: str) -> Origin:
        """Where the value of a field came from.

        Args:
            field: field name (`batch_size`) or key (`batch-size`).

        Raises:
            KeyError: there is no such field.
        """
        return self._origin_of(field)

    def changed(self, **values: object) -> Self:
        """A copy with some fields set by a program; the origins of the others stay.

        Raises:
            ConfigError: a value is refused, or there is no such field.
        """
        copy = type(self).__new__(type(self))
        copy._take(self._set_values(), values)
        vars(copy).update({k: v for k, v in vars(self).items() if k.startswith("_")})
        copy._origins = {k: v for k, v in self._origins.items() if k not in values}
        return copy

    def _shown_values(self) -> Values:
        """The values that are no defaults, for people."""
        return {n: v for n, v in self.values().items() if v != self.FIELDS[n]}

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._shown_values().items())
        return f"{type(self).__name__}({values})"


class SourceSpec(_Spec):
    """One source. Fields are the keys of `sources` in `docs/pipeline-files.md`.

    `uri` is absolute: a path, a pattern, a URL, or `camera:N`. It may hold a password: `label` is
    the text to show. None means that the source decides.
    """

    _section = "sources"
    uri: str
    name: str | None = None
    repeat: int = 1
    loop: bool = False
    live: bool | None = None
    fps: float | None = None
    drop_frame_interval: int = 0
    latency_ms: int | None = None
    rtp_protocol: str | None = None
    reconnect_interval_s: float | None = None
    reconnect_attempts: int | None = None
    playlist_reach: str | None = None
    camera_id: int | None = None
    gpu_id: int | None = None
    key_frames_only: bool = False
    low_delay: bool = False
    pace_ms: float = 0.0
    udp_buffer_size: int | None = None
    start_interval_s: float | None = None
    camera_size: tuple[int, ...] | None = None
    camera_fps: float | None = None
    camera_format: str | None = None
    renumber: bool = False
    dewarper: Path | None = None
    surface: int = 0

    @classmethod
    def given(cls, uri: str) -> SourceSpec:
        """A source as a command line gives it: any path that the system knows, kept as it is."""
        source = cls.__new__(cls)
        vars(source)["uri"] = uri
        return source

    @property
    def label(self) -> str:
        """Its name, or its uri without user, password and query."""
        return self.name or safe_uri(self.uri)

    @property
    def is_stream(self) -> bool:
        """Whether it is a network stream or camera; a file, pattern or folder otherwise."""
        return is_stream(self.uri)

    def _shown_values(self) -> Values:
        return super()._shown_values() | {"uri": safe_uri(self.uri)}


class ModelSpec(_Spec):
    """One model: its config file, and the values that the pipeline sets over it.

    Fields behind `config` override keys of that file; None leaves them alone. The colours are by
    class number, -1 for all classes.
    """

    _section = "models"
    config: Path
    gie_unique_id: int | None = None
    process_mode: ProcessMode | None = None
    batch_size: int | None = None
    interval: int | None = None
    gpu_id: int | None = None
    operate_on_gie_id: int | None = None
    operate_on_class_ids: tuple[int, ...] | None = None
    model_engine_file: Path | None = None
    labelfile_path: Path | None = None
    input_tensor_from_meta: bool | None = None
    preprocess: Path | None = None
    preprocess_gie_id: int | None = None
    raw_output_dir: Path | None = None
    border_colors: Mapping[int, Rgba] = MappingProxyType({})
    bg_colors: Mapping[int, Rgba] = MappingProxyType({})

    _given = Overrides()

    def overridden(self, overrides: Overrides) -> ModelSpec:
        """A copy with keys of the command line, which win over the pipeline's and the config's."""
        copy = self.changed()
        copy._given = self._given.plus(overrides)
        return copy

    @property
    def overrides(self) -> Values:
        """The fields of `ModelConfig` that the pipeline sets, without the colours."""
        names = [key.field for key in OVERRIDES.values() if key.field]
        return {n: value for n in names if (value := getattr(self, n)) is not None}

    def load(self) -> ModelConfig:
        """Read the config file and apply the pipeline's values; origins name the pipeline's lines.

        Raises:
            ConfigError: the config file is missing, or something in it is refused.
        """
        if not self.config.exists():
            raise ConfigError(
                f"there is no such {given_kind(self.config)}.",
                where=self.origin("config").where,
                expected=f"a file at {quoted(str(self.config), limit=None)}",
                fix=[quoted(hint, limit=None) for hint in missing_hints(self.config)],
                code="missing-file",
            )
        keys = {line.key for line in self._given.lines}
        cfg = ModelConfig.load(self.config, self._given)
        values = {n: v for n, v in self.overrides.items() if n.replace("_", "-") not in keys}
        origins = {name: self.origin(name) for name in values}
        notices: list[Finding] = []
        for field, key in COLORS.items():
            if key.replace("_", "-") not in keys:
                field = field.replace("-", "_")
                cfg, notice = colored(cfg, field, getattr(self, field), self.origin(field))
                notices += notice
        return cfg.changed(values, origins, notices) if values or notices else cfg


class TrackerSpec(_Spec):
    """The tracker behind the primary models: a name, or a tracker's own YAML file.

    `open_tracker(tracker.config or tracker.text, **tracker.options)` opens it. `settings` are texts
    by name. None for the models or classes to work on means all.
    """

    _section = "tracker"
    name: str | None = None
    config: Path | None = None
    settings: Mapping[str, str] = MappingProxyType({})
    operate_on_gie_id: tuple[int, ...] | None = None
    operate_on_class_ids: tuple[int, ...] | None = None

    def _check_whole(self) -> None:
        if (self.name is None) == (self.config is None):
            raise ValueError("a tracker has a name or a config, one of both")

    @property
    def text(self) -> str:
        """As a command line gives it: `iou`, `iou:max_age=30`, or the path of its file."""
        if self.config is not None:
            return str(self.config)
        settings = ",".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.name}:{settings}" if settings else str(self.name)

    @property
    def options(self) -> Values:
        """The arguments of `open_tracker` that `text` cannot hold."""
        options: Values = dict(self.settings) if self.config is not None else {}
        for field in ("operate_on_gie_id", "operate_on_class_ids"):
            if getattr(self, field) is not None:
                options[field] = getattr(self, field)
        return options


class TilerSpec(_Spec):
    """All sources in one image of `width` x `height` pixels; None rows or columns are chosen.

    `captions` are the names of the sources below their images.
    """

    _section = "tiler"
    rows: int | None = None
    columns: int | None = None
    width: int = 1280
    height: int = 720
    captions: bool = True


class OsdSpec(_Spec):
    """The drawing. Colours are r, g, b, a in 0..1; None is the painter's choice."""

    _section = "osd"
    show: bool = True
    show_boxes: bool = True
    show_text: bool = True
    show_masks: bool = True
    show_ids: bool = True
    show_confidence: bool = True
    border_width: int | None = None
    text_size: int | None = None
    text_color: Rgba | None = None
    text_bg_color: Rgba | None = None
    font: str | None = None
    show_names: bool = False
    show_clock: bool = False
    clock_x: int = 0
    clock_y: int = 0
    clock_size: int | None = None
    clock_color: Rgba | None = None


class SinkSpec(_Spec):
    """One output. `kind` None: by the path's ending; `fake` writes nothing, without a path.

    `source` restricts it to one source: a `camera_id`, or else a index among the sources.
    `uri` stands in the place of `path` where messages go.
    """

    _section = "sinks"
    kind: str | None = None
    path: Path | None = None
    uri: str | None = None
    codec: str | None = None
    container: str | None = None
    bitrate: int | None = None
    key_frame_interval: int | None = None
    profile: str | None = None
    preset: str | None = None
    source: int | None = None

    def _check_whole(self) -> None:
        if (self.path is None) != (self.kind == "fake" or self.uri is not None):
            raise ValueError("a sink has a path or a uri, unless it is a fake one")
        if self.uri is None:
            return
        if self.kind == "publish" and url_scheme(self.uri) in STREAM_SCHEMES:
            return
        if self.kind == "fake" or url_scheme(self.uri) not in MESSAGE_SCHEMES:
            raise ValueError(
                f"uri is none of {', '.join(MESSAGE_SCHEMES)}, "
                f"nor of kind publish and one of {', '.join(STREAM_SCHEMES)}"
            )
        if has_login(self.uri):
            raise ValueError("uri holds a user or password; the environment gives them")

    def _shown_values(self) -> Values:
        uri = self.uri and safe_uri(self.uri)
        return super()._shown_values() | ({"uri": uri} if uri else {})

    @property
    def text(self) -> str | None:
        """As `open_sink` takes it, a URL, `kind:path` or a path; None for a fake sink."""
        if self.uri is not None:
            return self.uri
        if self.path is None:
            return None
        return f"{self.kind}:{self.path}" if self.kind else str(self.path)


class ConsumerSpec(_Spec):
    """Messages of a broker that start and stop recordings.

    `uri` holds the topics with commas between. `adaptor` and `sensors` are files of the original.
    """

    _section = "consumers"
    uri: str
    adaptor: Path | None = None
    sensors: Path | None = None

    def _check_whole(self) -> None:
        if url_scheme(self.uri) not in RECEIVED_SCHEMES:
            raise ValueError(f"uri is none of {', '.join(RECEIVED_SCHEMES)}")
        if has_login(self.uri):
            raise ValueError("uri holds a user or password; the environment gives them")

    def _shown_values(self) -> Values:
        return super()._shown_values() | {"uri": safe_uri(self.uri)}


class PipelineSpec(_Spec):
    """A whole pipeline: `load_pipeline` reads it, `Pipeline` runs it.

    `models` are in the order in which they run; the tracker comes behind the last primary one.
    `tiler` None gives every source its own image.
    """

    sources: tuple[SourceSpec, ...]
    models: tuple[ModelSpec, ...] = ()
    tracker: TrackerSpec | None = None
    tiler: TilerSpec | None = None
    osd: OsdSpec = OsdSpec()
    sinks: tuple[SinkSpec, ...] = ()
    consumers: tuple[ConsumerSpec, ...] = ()
    analytics: Path | None = None
    keep_open: bool = False
    end_when_over: bool = False
    rest: str | None = None
    errors_to: str | None = None
    append: bool = False
    batch_size: int | None = None
    frame_size: tuple[int, ...] | None = None
    frame_padding: bool = False
    rates_interval_s: float = 0.0
    batch_timeout_ms: float = 40.0
    sync_inputs: bool = False
    sync_wait_ms: float = 0.0

    _path = Path("<no file>")
    _notices = tuple[Finding, ...]()

    def _check_whole(self) -> None:
        if not (self.sources or self.keep_open):
            raise ValueError("a pipeline has at least one source")
        for name in ("sources", "models", "sinks", "consumers"):
            if len(getattr(self, name)) > MAX_ITEMS:
                raise ValueError(f"more than {MAX_ITEMS} {name}")
        if sum(source.repeat for source in self.sources) > MAX_ITEMS:
            raise ValueError(f"more than {MAX_ITEMS} sources")

    @property
    def path(self) -> Path:
        """The file, as it was named; `<no file>` for a spec made by a program."""
        return self._path

    @property
    def notices(self) -> tuple[Finding, ...]:
        """Parts of the file that are not applied as written, and why; in the order of its lines."""
        return self._notices

    @property
    def batch_timeout_s(self) -> float:
        """How long a batch waits to fill up, in seconds; infinite for "until it is full"."""
        return math.inf if self.batch_timeout_ms < 0 else self.batch_timeout_ms / 1000

    @cached_property
    def opened_sources(self) -> tuple[SourceSpec, ...]:
        """The sources to open, each `repeat` 1: a repeated one stands there that many times."""
        opened: list[SourceSpec] = []
        for source in self.sources:
            single = source if source.repeat == 1 else source.changed(repeat=1)
            opened += [single] * source.repeat
        return tuple(opened)

    def source_index(self, sink: SinkSpec) -> int | None:
        """The index among `opened_sources` that a sink is restricted to; None for all.

        Raises:
            ConfigError: there is no such source.
        """
        number = sink.source
        if number is None:
            return None
        sources = self.opened_sources
        for index, source in enumerate(sources):
            if source.camera_id == number:
                return index
        if number < len(sources) and sources[number].camera_id is None:
            return number
        raise ConfigError(
            f"there is no source {number}.",
            where=sink.origin("source").where,
            expected=f"a source from 0 to {len(sources) - 1}, or a camera-id",
        )

    def with_notice(self, notice: Finding) -> Self:
        """A copy with one more notice."""
        copy = self.changed()
        copy._notices = (*self._notices, notice)
        return copy

    def with_models_overridden(self, settings: Sequence[GivenKey]) -> PipelineSpec:
        """A copy with keys of the command line set over its models.

        Raises:
            ConfigError: it is not clear for which model one is.
        """
        if not settings:
            return self
        parts = distributed(settings, [model.config.name for model in self.models])
        pairs = zip(self.models, parts, strict=True)
        return self.changed(models=tuple(model.overridden(part) for model, part in pairs))

    def load_models(self) -> list[ModelConfig]:
        """Every model's config with the pipeline's overrides, in order.

        Raises:
            ConfigError: a config file is missing, or something in it is refused.
        """
        return [model.load() for model in self.models]

    def effective(self) -> list[EffectiveValue]:
        """Every value that is no default, with its origin; secrets in URIs are left out."""
        rows = []
        for name, section in SECTIONS.items():
            value = getattr(self, name)
            items = value if section.many else [] if value is None else [value]
            for number, item in enumerate(items):
                group = f"{name} {number}" if section.many else name
                for field, shown in item._shown_values().items():
                    text = quoted(_shown_text(shown), limit=None)
                    origin = str(item.origin(field))
                    rows.append(EffectiveValue(group, field.replace("_", "-"), text, origin))
        for key in TOP_KEYS.values():
            value = getattr(self, key.field or "")
            if value != key.default:
                origin = str(self.origin(key.field or ""))
                rows.append(EffectiveValue("pipeline", key.name, _shown_text(value), origin))
        return rows

    def dump(self) -> str:
        """The pipeline as a Headrace pipeline file; paths are absolute, passwords are in it.

        Loading it gives the same spec.
        """
        return dump_pipeline(self)


_TYPES: Values = {
    spec._section: spec
    for spec in (
        SourceSpec,
        ModelSpec,
        TrackerSpec,
        TilerSpec,
        OsdSpec,
        SinkSpec,
        ConsumerSpec,
    )
}


def build_spec(parts: Parts, document: Document) -> PipelineSpec:
    """The spec of a file without problems."""
    values: Values = dict(parts.top)
    origins: dict[str, Origin] = dict(parts.origins)
    for name, items in parts.items.items():
        specs = [_TYPES[name].read(v, o) for v, o in items]
        if SECTIONS[name].many:
            values[name] = tuple(specs)
        elif specs:
            values[name] = specs[-1]
    spec = PipelineSpec.read(values, origins)
    spec._path = document.path
    for sink in spec.sinks:
        spec.source_index(sink)
    seen: dict[int, Origin] = {}
    for source in spec.sources:
        number, origin = source.camera_id, source.origin("camera_id")
        if number in seen:
            document.refuse(
                origin.line or 1,
                f"camera-id {number} is given twice, first in line {seen[number].line}.",
                "a number for each source",
                code="source-id-twice",
            )
        elif number is not None:
            seen[number] = origin
    report(document.path, document.problems)
    spec._notices = tuple(n for _, n in sorted(document.notices, key=lambda pair: pair[0]))
    return spec


def _shown_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ";".join(map(_shown_text, value))
    if isinstance(value, Mapping):
        return "; ".join(f"{k}: {_shown_text(v)}" for k, v in value.items())
    return str(value)


def dump_pipeline(spec: PipelineSpec) -> str:
    """Return the file's text: values that are no defaults, with absolute paths."""
    lines: list[str] = []
    for section in SECTIONS.values():
        value = getattr(spec, section.name)
        if section.many and value:
            lines.append(f"{section.name}:")
            for item in value:
                body = list(_pairs(section, item))
                lines += [f"  - {body[0]}", *(f"    {line}" for line in body[1:])]
        elif not section.many and value is not None:
            body = list(_pairs(section, value))
            if body:
                lines += [f"{section.name}:", *(f"  {line}" for line in body)]
            elif section.name != "osd":
                lines.append(f"{section.name}: {{}}")
    for key in TOP_KEYS.values():
        value = getattr(spec, key.field or "")
        if value != key.default:
            lines.append(f"{key.name}: {_value(value)}")
    return "\n".join(lines) + "\n"


def _pairs(section: Section, item: Any) -> Iterator[str]:
    """`key: value` of each value that differs from its default, and of the required key."""
    for key in section.keys.values():
        value = getattr(item, key.field or "")
        default = item.FIELDS[key.field or ""]
        if value == default and key.name != section.required:
            continue
        if key.name in COLORS:
            pairs = (f"{'all' if n < 0 else n}: {_value(color)}" for n, color in value.items())
            text = f"{{{', '.join(pairs)}}}"
        else:
            text = _value(value)
        yield f"{key.name}: {text}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, ProcessMode):
        return value.name.lower()
    if isinstance(value, str | Path):
        return yaml_text(str(value))
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_value(n)}: {_value(v)}' for n, v in value.items())}}}"
    return repr(value)
