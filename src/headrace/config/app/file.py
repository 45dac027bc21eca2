"""Read deepstream-app configs, INI and YAML, as pipelines.

Values mean the same as there; keys that are not applied are reported once, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headrace._core.text import quoted
from headrace.config.app.keys import AppGroup, group_of
from headrace.config.app.messages import LeftOut, errors_url
from headrace.config.app.models import (
    add_preparations,
    order_models,
    read_model,
)
from headrace.config.app.reader import AppReader, FoundGroup
from headrace.config.app.recordings import consumers, recordings, saved_images
from headrace.config.app.releases import unread_group
from headrace.config.app.sinks import AppSinks, Tiling, tiler_item, tiling_of
from headrace.config.app.sources import AppSources, add_dewarpers
from headrace.config.app.tracker import tracker_item
from headrace.config.document import Document, Entry, Group
from headrace.config.enums import Generation
from headrace.config.origin import Origin
from headrace.config.paths import is_stream
from headrace.config.pipeline_keys import MAX_ITEMS, OSD
from headrace.config.pipeline_yaml import Item, Parts
from headrace.config.reading import read_document
from headrace.config.values import Values

_OF_INI = ("sourceN", "source-list", "source-attr-all")
_OF_SERVICE = ("http-ip", "http-port", "max-batch-size", "enable-error-propagation")
_HTTP_PORT = 9000  # of the original's server
_ON = Entry("enable", "1", 1)
_PREPARATIONS = ("pre-process", "secondary-pre-processN")


def parse_app(
    data: bytes, path: Path, generation: Generation | None = None
) -> tuple[Parts, Document]:
    """Read a deepstream-app config; refusals are in the document's problems.

    Args:
        data: its content.
        path: its file, for messages and paths.
        generation: release whose behaviour is wanted; None applies the keys of all.
    """
    document = read_document(data, path)
    parts = Parts()
    if not document.problems:
        _App(document, parts, generation).run()
    return parts, document


class _App:
    def __init__(self, document: Document, parts: Parts, generation: Generation | None) -> None:
        self.document = document
        self.parts = parts
        self.generation = generation
        self.reader = AppReader(document, generation=generation)
        self.sources = AppSources(self.reader)
        self.found: dict[str, FoundGroup] = {}  # groups that exist once
        self.models: list[Item] = []
        self.preparations: list[tuple[FoundGroup, Group]] = []
        self.sinks: list[tuple[FoundGroup, Group]] = []
        self.consumers: list[tuple[FoundGroup, Group]] = []
        self.dewarpers: list[tuple[FoundGroup, Group]] = []

    def run(self) -> None:
        document, reader = self.document, self.reader
        groups = document.groups
        self._once(groups, "application", "streammux", "tests", "source-list", "source-attr-all")
        listed_groups = {
            "message-consumerN": self.consumers,
            "sinkN": self.sinks,
            "dewarperN": self.dewarpers,
        }
        listed = self.found.get("source-list")
        if document.form == "yaml" and "source" in groups:
            listed = None
        if listed is not None and "list" in listed.values:
            self._list(listed, groups)
        for group in groups.values():
            kind = group_of(group.name)
            if kind is None:
                reader.unknown_group(group)
            elif (releases := unread_group(_listed_name(kind, group), self.generation)) is not None:
                self._other_release(kind, group, releases)
            elif kind.reason is not None:
                self._not_run(kind, group)
            elif kind.name in _OF_INI and document.form == "yaml" and "source" in groups:
                text = f"{group.name}: is left out: in YAML the original reads sources from the "
                text += "csv-file-path of source: alone; add a row there"
                document.remark(group.line, text, code="element-left-out")
            elif kind.name == "sourceN":
                if not self._yaml_source(group):
                    self.sources.group(kind, group)
            elif kind.name == "source":
                self._csv(reader.read(kind, group), group)
            elif kind.name in ("primary-gie", "secondary-gieN"):
                self._model(kind, group)
            elif kind.name in _PREPARATIONS:
                self._preparation(kind, group)
            elif kind.name in listed_groups:
                section = reader.read(kind, group)
                if section is not None:
                    listed_groups[kind.name].append((section, group))
            elif group.name not in self.found:
                self._once(groups, group.name)
        self._apply("application", self._application)
        self._apply("streammux", self._streammux)
        self._apply("source-list", self._service)
        self._finish_sources()
        self._finish_models()
        self._set_gpus()
        self._apply("tracker", self._tracker)
        self._apply("nvds-analytics", self._analytics)
        self._osd()
        self._tiler_and_sinks()
        reader.tell_unused()

    def _yaml_source(self, group: Group) -> bool:
        """Whether a group is left out, as the original does in YAML; a generation is strict."""
        if self.document.form != "yaml" or group.last().get("enable", _ON).text == "0":
            return False
        strict = self.generation is not None
        text = f"{group.name}: the original ignores it in YAML, and has no source then"
        if strict:
            text = f"{group.name}: is left out: in YAML {self.generation} reads sources from the "
            text += "csv-file-path of source: alone; add a row there"
        self.document.remark(
            group.line, text, code="element-left-out" if strict else "key-approximated"
        )
        return strict

    def _other_release(self, kind: AppGroup, group: Group, releases: str) -> None:
        """A group that the generation does not read; [dewarper] without a number ends 6.3."""
        name = quoted(group.name)
        if kind.name == "dewarperN":
            text = f"[{name}] is read {releases} alone; {self.generation} refuses the file."
            self.document.refuse(group.line, text, "[dewarper0], for the first source that is on")
            return
        text = f"[{name}] is left out: {self.generation} does not read it, but {releases}"
        self.document.remark(group.line, text, code="element-left-out", data={"element": name})

    def _apply(self, name: str, read: Callable[[FoundGroup], None]) -> None:
        if name in self.found:
            read(self.found[name])

    def _once(self, groups: Mapping[str, Group], *names: str) -> None:
        for name in names:
            group, kind = groups.get(name), group_of(name)
            if group is not None and kind is not None:
                section = self.reader.read(kind, group)
                if section is not None:
                    self.found[name] = section

    def _not_run(self, kind: AppGroup, group: Group) -> None:
        enable, reason = group.last().get("enable"), kind.reason
        if reason is None or (enable is not None and enable.text.strip() == "0"):
            return
        name = quoted(group.name)
        text = f"[{name}] is left out: {reason.text}"
        self.document.remark(
            group.line, text, reason.level, code="element-left-out", data={"element": name}
        )
        self.reader.only_unknown(kind, group)

    def _put(self, name: str, key: str, value: Any, section: FoundGroup) -> None:
        """A value of the whole pipeline."""
        self.parts.top[name] = value
        self.parts.origins[name] = section.origin(key)

    # --- sources ----------------------------------------------------------------------------------

    def _list(self, listed: FoundGroup, groups: Mapping[str, Group]) -> None:
        common = self.found.get("source-attr-all")
        if common is None and "source-attr-all" not in groups:
            line = groups["source-list"].line
            self.document.remark(line, "there is no [source-attr-all] beside [source-list]", "info")
        elif common is None:
            line = groups["source-attr-all"].line
            self.document.remark(
                line,
                "the sources of [source-list] are off with [source-attr-all]",
                code="group-off",
            )
            return
        self.sources.source_list(listed, common, groups["source-list"].line)

    def _service(self, listed: FoundGroup) -> None:
        """The keys of `[source-list]` for the element that REST controls, and its errors."""
        if not self.sources.rest:
            names = [name for name in _OF_SERVICE if listed.get(name)]
            if names:
                text = f"[source-list] {', '.join(names)}: counts with use-nvmultiurisrcbin=1 alone"
                self.document.remark(listed.line(names[0]), text, "info", code="key-approximated")
            return
        port = listed.get("http-port", _HTTP_PORT)
        if port:
            host = listed.get("http-ip") or "localhost"
            key = "http-port" if "http-port" in listed.values else "use-nvmultiurisrcbin"
            self._put("rest", key, f"{host.replace('localhost', '127.0.0.1')}:{port}", listed)
            if not self.parts.top.get("keep_open"):
                self._put("keep_open", "use-nvmultiurisrcbin", True, listed)
                self._put("end_when_over", "use-nvmultiurisrcbin", True, listed)
        if listed.get("enable-error-propagation"):
            url = errors_url(listed)
            if isinstance(url, LeftOut):
                text = f"[source-list] enable-error-propagation: {url.cause}; {url.way}"
                line = listed.line("enable-error-propagation")
                self.document.remark(line, text, code="element-left-out")
            else:
                self._put("errors_to", "enable-error-propagation", url, listed)

    def _csv(self, section: FoundGroup | None, group: Group) -> None:
        if section is not None and "csv-file-path" in section.values:
            self.sources.csv(section.values["csv-file-path"], section.line("csv-file-path"))
        elif section is not None:
            self.document.refuse(
                group.line, "[source] has no csv-file-path.", "csv-file-path, or a group [source0]"
            )

    def _finish_sources(self) -> None:
        items = self.sources.finish()
        add_dewarpers(items, self.dewarpers, self.found.get("streammux"))
        loops, live = self.found.get("tests"), self.found.get("streammux")
        for values, origins in items:
            stream = is_stream(values["uri"])
            if loops is not None and loops.get("file-loop") and not stream:
                values.setdefault("loop", True)
                origins.setdefault("loop", loops.origin("file-loop"))
            if live is not None and live.get("frame-num-reset-on-stream-reset") and stream:
                values.setdefault("renumber", True)
                origins.setdefault("renumber", live.origin("frame-num-reset-on-stream-reset"))
            if live is not None and live.get("live-source") and stream:
                values.setdefault("live", True)
                origins.setdefault("live", live.origin("live-source"))
        if len(items) > MAX_ITEMS:
            self.document.refuse(1, f"the file has {len(items)} sources.", f"{MAX_ITEMS} at most")
        elif not items and not self.document.problems:
            out = "; ".join(self.sources.left_out)
            self.document.refuse(
                1,
                f"the pipeline has no sources{f': {out}' if out else ''}.",
                "a group [source0] with enable=1 and a uri",
            )
        self.parts.items["sources"] = items

    # --- models and tracker -----------------------------------------------------------------------

    def _model(self, kind: AppGroup, group: Group) -> None:
        section = self.reader.read(kind, group)
        if section is None:
            return
        item = read_model(self.document, section, group, primary=kind.name == "primary-gie")
        if item is not None:
            self.models.append(item)

    def _preparation(self, kind: AppGroup, group: Group) -> None:
        section = self.reader.read(kind, group)
        if section is None:
            return
        if "config-file" in section.values:
            self.preparations.append((section, group))
        else:
            text = f"[{quoted(group.name)}] has no config-file."
            self.document.refuse(group.line, text, "config-file=, a config of nvdspreprocess")

    def _application(self, application: FoundGroup) -> None:
        if application.get("enable-perf-measurement"):
            key = "perf-measurement-interval-sec"
            seconds = application.get(key)
            if seconds:
                self._put("rates_interval_s", key, float(seconds), application)
            else:
                text = "[application] enable-perf-measurement counts with "
                text += f"{key} of 1 or more alone"
                self.document.remark(application.line("enable-perf-measurement"), text)
        for key, kind in (
            ("gie-kitti-output-dir", "kitti-primary"),
            ("kitti-track-output-dir", "kitti-objects"),
        ):
            if key in application.values:
                origin = application.origin(key)
                values = {"kind": kind, "path": application.values[key]}
                self.parts.items["sinks"].append((values, {"kind": origin, "path": origin}))

    def _set_gpus(self) -> None:
        """Give models and sources without a number of their own that of all."""
        application = self.found.get("application")
        if application is None or "global-gpu-id" not in application.values:
            return
        for values, origins in (*self.models, *self.parts.items["sources"]):
            if "gpu_id" not in values:
                values["gpu_id"] = application.values["global-gpu-id"]
                origins["gpu_id"] = application.origin("global-gpu-id")

    def _finish_models(self) -> None:
        listed, count = self.found.get("source-list"), len(self.parts.items["sources"])
        if listed is not None and self.sources.listed is not None and self.document.form == "ini":
            # with a list the original takes the number of sources, whatever the groups say
            origin = listed.origin("list")
            if self.sources.rest and listed.get("max-batch-size"):
                count, origin = listed.values["max-batch-size"], listed.origin("max-batch-size")
            self.parts.top["batch_size"] = count
            self.parts.origins["batch_size"] = origin
            for number, (values, origins) in enumerate(self.models):
                if number == 0:
                    values["batch_size"], origins["batch_size"] = count, origin
                elif listed.get("sgie-batch-size"):
                    values["batch_size"] = listed.values["sgie-batch-size"]
                    origins["batch_size"] = listed.origin("sgie-batch-size")
        models = order_models(self.models, self.document)
        add_preparations(models, self.preparations, self.document)
        self.parts.items["models"] = models

    def _streammux(self, section: FoundGroup) -> None:
        sizes = [section.get(key) for key in ("width", "height")]
        if all(sizes):
            self._put("frame_size", "width", tuple(sizes), section)
            if section.get("enable-padding"):
                self._put("frame_padding", "enable-padding", True, section)
        elif any(sizes):
            key = "width" if sizes[0] else "height"
            text = f"[streammux] {key} counts with the other one alone: frames keep their size"
            self.document.remark(section.line(key), text)
        if section.get("batch-size"):
            self._put("batch_size", "batch-size", section.values["batch-size"], section)
        if section.get("drop-pipeline-eos"):
            self._put("keep_open", "drop-pipeline-eos", True, section)
        if section.get("sync-inputs"):
            self._put("sync_inputs", "sync-inputs", True, section)
            if section.get("max-latency"):
                self._put("sync_wait_ms", "max-latency", section.get("max-latency") / 1e6, section)
        elif section.get("max-latency"):
            text = "[streammux] max-latency counts with sync-inputs=1 alone"
            self.document.remark(section.line("max-latency"), text, "info")
        timeout = section.get("batched-push-timeout")
        if timeout is not None:
            milliseconds = -1.0 if timeout < 0 else timeout / 1000
            self._put("batch_timeout_ms", "batched-push-timeout", milliseconds, section)

    def _tracker(self, section: FoundGroup) -> None:
        self.parts.items["tracker"].append(tracker_item(section, self.reader))

    def _analytics(self, section: FoundGroup) -> None:
        if "config-file" in section.values:
            self._put("analytics", "config-file", section.values["config-file"], section)
        else:
            line = section.line("enable")
            self.document.refuse(line, "[nvds-analytics] has no config-file.", "a file of rules")

    # --- what is seen -----------------------------------------------------------------------------

    def _osd(self) -> None:
        section = self.found.get("osd")
        tracker = self.found.get("tracker")
        values: Values = {"show": False}
        origins: dict[str, Origin] = {}
        if section is not None:
            keys = [key for key in section.kind.keys.values() if key.field in _OSD_FIELDS]
            values, origins = section.fields(keys)
        listed = self.found.get("source-list")
        if listed is not None and listed.get("stream-name-display"):
            values["show_names"] = True
            origins["show_names"] = listed.origin("stream-name-display")
        if tracker is not None and tracker.get("display-tracking-id") is False:
            values["show_ids"] = False
            origins["show_ids"] = tracker.origin("display-tracking-id")
        tiling, count = tiling_of(self.found.get("tiled-display")), len(self.parts.items["sources"])
        if section is not None and count > 1 and tiling in (Tiling.TILED, Tiling.BOTH):
            if values.get("show_text", True):
                line = self.document.groups["tiled-display"].line
                text = (
                    "images of several sources in one have boxes without text, as in the original "
                )
                text += "(started without -t); display-text=1 changes nothing there"
                self.document.remark(line, text, "info")
            values["show_text"] = False
            origins["show_text"] = self.found["tiled-display"].origin("enable")
        self.parts.items["osd"].append((values, origins))

    def _tiler_and_sinks(self) -> None:
        tiler = self.found.get("tiled-display")
        tiling = tiling_of(tiler)
        if tiler is not None and tiling is not Tiling.BATCHED:
            self.parts.items["tiler"].append(tiler_item(tiler))
        count, converter = len(self.parts.items["sources"]), self.found.get("message-converter")
        listed = self.found.get("source-list")
        sinks = AppSinks(
            self.document, tiling, count, converter, listed, generation=self.generation
        )
        for section, group in self.sinks:
            sinks.add(section, group)
        self.parts.items["sinks"] += sinks.items
        images = self.found.get("img-save")
        if images is not None:
            item = saved_images(images, self.document.groups["img-save"].line)
            self.parts.items["sinks"] += [item] if item is not None else []
        sources = self.parts.items["sources"]
        self.parts.items["consumers"] = consumers(self.consumers, self.document)
        self.parts.items["sinks"] += recordings(
            self.sources.recorded, sources, consumed=bool(self.parts.items["consumers"])
        )


def _listed_name(kind: AppGroup, group: Group) -> str:
    """The kind of a group; a name without its number, where that makes a difference."""
    return group.name if group.name == "dewarper" else kind.name


_OSD_FIELDS = {key.field for key in OSD.keys.values()}
