"""Changes of a running pipeline: interval, time-out, regions, drawing, models.

Each is kept for the next life of the service under a name: `interval`, `osd labels`, `regions 0`,
`model 0`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError
from headrace._core.files import sha256_of
from headrace._core.findings import Finding
from headrace.live.kept_changes import KeptChange, KeptChanges, kept_version
from headrace.pipeline.analytics import Analytics, Region
from headrace.pipeline.track import LiveTracker

if TYPE_CHECKING:
    from headrace.infer.history import ModelHistory, ModelVersion
    from headrace.live.view import LiveView
    from headrace.pipeline import Pipeline

OSD_SWITCHES = ("boxes", "labels", "masks", "ids", "confidence", "figures", "keypoints", "legend")
MAX_INTERVAL = 1 << 20
MAX_TIMEOUT_S = 3600.0
_MAX_REGIONS = 64
_BEGINS_S = 5.0  # an answer waits so long for the first batch of another version
_LOOK_S = 0.02


class UpdatePendingError(HeadraceError):
    """A model is being changed, or waits for the frame that changes it."""

    code = "update-pending"


class Controls:
    """Changes a running pipeline on request; every value is checked before anything is changed.

    Args:
        pipeline: that runs.
        view: of it.
        kept: the changes of earlier lives.
    """

    def __init__(self, pipeline: Pipeline, view: LiveView, kept: KeptChanges | None = None) -> None:
        self._pipeline, self._view = pipeline, view
        self._updating = [Lock() for _ in pipeline.models]
        self._kept = kept or KeptChanges()
        self._start = _by_name(self.settings())
        self._analyzer = next((s for s in pipeline.stages if isinstance(s, Analytics)), None)
        self._rules = self._analyzer and sha256_of(repr(self._analyzer.rules).encode())

    def restore(self) -> None:
        """Make the changes of earlier lives again, before the pipeline begins."""
        self._kept.restore(self._pipeline, self._said, self._again)

    def _said(self, name: str) -> Any:
        """The value of the files of the service for a change's name.

        Raises:
            HeadraceError: there is no such thing.
        """
        kind, _, rest = name.partition(" ")
        if kind == "regions":
            return self._rules
        if kind == "model":
            with self._changing(_index(rest)) as model:
                return _digest(model.history.versions[1].hashes)
        if name not in self._start:
            raise HeadraceError("there is no such setting")
        return self._start[name]

    def _again(self, name: str, value: Any) -> None:
        """Make a change of an earlier life.

        Raises:
            HeadraceError: it cannot be made.
        """
        kind, _, rest = name.partition(" ")
        if kind == "regions":
            self.set_regions(_index(rest), value)
        elif kind == "model":
            with self._changing(_index(rest)) as model:
                steps, files = _version_of(value)
                history = model.history
                paths = [next(iter(_wanted(step, history.folder).items())) for step in steps]
                version = kept_version(history, paths, files)
                self._update(_index(rest), model, {}, version)
        else:
            self.change({"osd": {rest: value}} if kind == "osd" else {name: value})

    def settings(self) -> dict[str, Any]:
        """Return the present values of all settings."""
        painter = self._view.painter
        return {
            "interval": self._pipeline.interval,
            "batch_timeout_s": self._pipeline.batch_timeout_s,
            "osd": {name: getattr(painter, name) for name in OSD_SWITCHES},
        }

    def change(self, values: Mapping[str, Any]) -> None:
        """Change settings.

        Raises:
            HeadraceError: a name is unknown or a value is out of range; then nothing is changed.
        """
        unknown = set(values) - {"interval", "batch_timeout_s", "osd"}
        if unknown or not values:
            raise HeadraceError(
                f"no settings: {', '.join(sorted(unknown)) or 'none'}",
                expected="interval, batch_timeout_s, osd",
            )
        changes: list[Any] = []
        if "interval" in values:
            interval = whole(values["interval"], "interval", MAX_INTERVAL)
            changes.append(lambda: self._pipeline.set_interval(interval))
        if "batch_timeout_s" in values:
            timeout = number(values["batch_timeout_s"], "batch_timeout_s", MAX_TIMEOUT_S)
            changes.append(lambda: setattr(self._pipeline, "batch_timeout_s", timeout))
        if "osd" in values:
            switches = _switches(values["osd"])
            changes.append(lambda: self._draw(switches))
        for change in changes:
            change()
        made = {name: KeptChange(v, self._start[name]) for name, v in _by_name(values).items()}
        self._kept.keep(self._pipeline, made)

    def _draw(self, switches: dict[str, Any]) -> None:
        self._view.painter = replace(self._view.painter, **switches)
        self._pipeline.change_drawing(**switches)

    def set_regions(self, source_id: int, entries: object) -> None:
        """Replace the regions of a source in the rules of the analytics.

        Args:
            source_id: of the source.
            entries: dictionaries with `roi_id`, `left`, `top`, `width` and `height`, in pixels of
                the images that the rules are for.

        Raises:
            HeadraceError: there is no such source, there are no analytics, or something is no
            region.
        """
        if source_id not in [s.source_id for s in self._pipeline.sources]:
            raise HeadraceError(f"there is no source {source_id}")
        if self._analyzer is None:
            raise HeadraceError(
                "the pipeline has no analytics", fix="start it with --analytics FILE"
            )
        if not isinstance(entries, list) or len(entries) > _MAX_REGIONS:
            raise HeadraceError("roi is no list of regions", expected=f"{_MAX_REGIONS} at most")
        regions = tuple(_region(item) for item in entries)
        if len({r.name for r in regions}) < len(regions):
            raise HeadraceError("two regions have one roi_id")
        self._analyzer.set_regions(source_id, regions)
        name = f"regions {source_id}"
        self._kept.keep(self._pipeline, {name: KeptChange(entries, self._rules)})

    def change_tracker(self, name: object) -> None:
        """Change keys of the tracker by a file of its folder, and note those that it leaves.

        Raises:
            HeadraceError: there is no tracker that changes, the file lies elsewhere, or it says
                what cannot be.
        """
        tracker = next((s for s in self._pipeline.stages if isinstance(s, LiveTracker)), None)
        if tracker is None:
            raise HeadraceError("the pipeline has no tracker", fix="start it with --tracker")
        for finding in tracker.change(_within(tracker.folder.resolve(), "config_path", name)):
            self._pipeline.note(finding)

    def forget_source(self, source_id: int) -> None:
        """Forget the regions of a source that is removed for good."""
        self._kept.forget(self._pipeline, f"regions {source_id}")

    def update_model(self, index: int, request: Mapping[str, object]) -> int:
        """Load another model beside a running one, and change to it between two batches.

        Args:
            index: place of the model in the pipeline.
            request: `{"config": PATH}`, `{"engine": PATH}` or `{"model": PATH}`, within the folder
                that the config of this model lay in when the service started; or
                `{"version": NUMBER}` of one that ran before.

        Returns:
            The number of the version that runs; without frames it begins with the next one.

        Raises:
            UpdatePendingError: an earlier change of this model has not come to its end.
            HeadraceError: there is no such model, the file lies elsewhere, or it does not fit; the
                old model runs on then, and a notice says why.
        """
        with self._changing(index) as model:
            return self._update(index, model, request)

    @contextmanager
    def _changing(self, index: int) -> Iterator[Any]:
        """Keep others from changing a model, and give it."""
        models = self._pipeline.models
        if not 0 <= index < len(models) or not hasattr(models[index], "update_model"):
            raise HeadraceError(f"there is no model {index} that can be updated")
        model, lock = models[index], self._updating[index]
        if not lock.acquire(blocking=False):
            raise UpdatePendingError("another change of the model is under way", where=model.name)
        try:
            if model.history.pending:
                text = f"version {model.history.proposed} waits for the next frame"
                raise UpdatePendingError(text, where=model.name)
            yield model
        finally:
            lock.release()

    def _update(
        self,
        index: int,
        model: Any,
        request: Mapping[str, object],
        version: ModelVersion | None = None,
    ) -> int:
        outcome: list[int] = []
        try:
            updater = model.update_model(
                **(
                    _wanted(request, model.history.folder)
                    if version is None
                    else {"version": version}
                ),
                on_updated=lambda status, _: outcome.append(status),
            )
        except HeadraceError as error:
            model.history.refuse(str(next(iter(request.values()), "")), str(error))
            text = f"the model was not updated: {error:brief}"
            data = {"refused": len(model.history.refused)}
            self._pipeline.note(Finding("model-not-updated", "warning", text, model.name, data))
            raise
        updater.wait()
        if outcome != [0]:
            raise HeadraceError(updater.told[-1] if updater.told else "it was not loaded")
        self._keep_model(index, model.history)
        end = monotonic() + _BEGINS_S
        while model.history.pending and self._pipeline.state == "running" and monotonic() < end:
            sleep(_LOOK_S)
        return int(model.history.proposed)

    def _keep_model(self, index: int, history: ModelHistory) -> None:
        """Note the version that was loaded last; the one of the start needs no note."""
        name, version = f"model {index}", history.latest
        if not version.steps:
            self._kept.forget(self._pipeline, name)
            return
        steps = [{kind: history.shown(path)} for kind, path in version.steps]
        files = {str(path): digest for path, digest in version.hashes.items()}
        start = _digest(history.versions[1].hashes)
        change = KeptChange({"steps": steps, "files": files}, start)
        self._kept.keep(self._pipeline, {name: change})

    def roll_back(self, index: int) -> int:
        """Change back to the version that ran before the present one.

        Returns:
            Its number.

        Raises:
            UpdatePendingError: as `update_model`.
            HeadraceError: there is none, or it cannot run again; the present one runs on then.
        """
        with self._changing(index) as model:
            previous = model.history.previous
            if previous is None:
                raise HeadraceError("no version ran before this one", where=model.name)
            return self._update(index, model, {"version": previous.number})


def _by_name(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names under which they are kept."""
    named = {name: value for name, value in settings.items() if name != "osd"}
    return named | {f"osd {name}": value for name, value in settings.get("osd", {}).items()}


def _digest(hashes: Mapping[Path, str]) -> str:
    """One hash for the files of a model."""
    return sha256_of("".join(f"{digest} {path}\n" for path, digest in hashes.items()).encode())


def _index(text: str) -> int:
    """The number behind a name.

    Raises:
        HeadraceError: it is none.
    """
    return whole(text, "the number", 1 << 31, texts=True)


def _version_of(value: Any) -> tuple[list[dict[str, str]], dict[Path, str]]:
    """Steps and files of a version that was kept.

    Raises:
        HeadraceError: they have another form.
    """
    try:
        steps = [{str(kind): str(path)} for step in value["steps"] for kind, path in step.items()]
        files = {Path(path): str(digest) for path, digest in value["files"].items()}
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise HeadraceError("it is no version of a model") from error
    if any("version" in step for step in steps):
        raise HeadraceError("a step of a version is a file")
    return steps, files


def _wanted(request: Mapping[str, object], folder: Path) -> dict[str, Any]:
    """The argument of `update_model` that a request means."""
    names = ("config", "engine", "model", "version")
    if len(request) != 1 or not set(request) <= set(names):
        raise HeadraceError(
            "an update names one file or version",
            expected='{"config": "…"}, {"engine": …}, {"model": "….onnx"} or {"version": 1}',
        )
    ((kind, name),) = request.items()
    if kind == "version":
        return {"version": whole(name, "version", 1 << 31)}
    return {kind: _within(folder, kind, name)}


def _within(folder: Path, kind: str, name: object) -> Path:
    """A file that a request names, in the folder that it may choose from.

    Raises:
        HeadraceError: it is none, or lies elsewhere.
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise HeadraceError(f"{kind} is no path")
    path = (folder / name).resolve()
    # a config may load code: those who may talk to the service must not choose any file
    if folder not in path.parents:
        raise HeadraceError(
            f"the {kind} lies outside of the folder that the service was started with",
            fix=f"put it into {folder}",
        )
    if not path.is_file():  # a pipe would keep the service waiting for a writer
        raise HeadraceError(f"the {kind} is no file", where=str(path))
    return path


def whole(value: object, name: str, most: int, *, texts: bool = False) -> int:
    """Return a whole number, also one that is written as 2.0, or with `texts` as a text.

    Raises:
        HeadraceError: it is none, or not from 0 to `most`.
    """
    if texts and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise HeadraceError(f"{name} is out of range", expected=f"a whole number from 0 to {most}")
    return value


def number(value: object, name: str, most: float) -> float:
    """Return a number.

    Raises:
        HeadraceError: it is none, or not from 0 to `most`.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
        raise HeadraceError(f"{name} is out of range", expected=f"a number from 0 to {most:g}")
    return float(value)


def _switches(flags: object) -> dict[str, bool]:
    if not isinstance(flags, dict) or not flags or set(flags) - set(OSD_SWITCHES):
        raise HeadraceError("osd has other switches", expected=", ".join(OSD_SWITCHES))
    if not all(isinstance(value, bool) for value in flags.values()):
        raise HeadraceError("a switch of osd is neither true nor false")
    return flags


def _region(item: object) -> Region:
    if not isinstance(item, dict):
        raise HeadraceError("a region is no object")
    name = item.get("roi_id")
    if not (isinstance(name, str | int) and 0 < len(str(name)) <= 128):
        raise HeadraceError("a region has no roi_id")
    left, top, width, height = (
        number(item.get(key), key, 65535) for key in ("left", "top", "width", "height")
    )
    if not (width and height):
        raise HeadraceError(f"region {name} has no area")
    corners = (left, top), (left + width, top), (left + width, top + height), (left, top + height)
    return Region(name=str(name), points=corners)
