"""`open_tracker`: a tracker from its name with settings, or from a YAML file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

from headrace._core.errors import ConfigError, CustomLibraryError
from headrace._core.findings import Finding
from headrace._core.named_settings import split_settings
from headrace._core.near import did_you_mean, nearest
from headrace.pipeline.track.iou import IouFollower, IouSettings
from headrace.pipeline.track.library import (
    LIBRARY_TRACKERS,
    LibraryFollower,
    library_settings,
    library_tracker,
)
from headrace.pipeline.track.look_follower import LookFollower
from headrace.pipeline.track.looks import INPUT_VALUES, PIXELS, LookModel, look_model_of
from headrace.pipeline.track.original_file import (
    OriginalTracker,
    preset_entries,
    presets,
    read_original,
)
from headrace.pipeline.track.original_keys import find_key, original_keys
from headrace.pipeline.track.original_live import LiveValues
from headrace.pipeline.track.selection import Selection
from headrace.pipeline.track.settings import Setting, check_settings, settings_of
from headrace.pipeline.track.settings_file import FileSetting, read_entries
from headrace.pipeline.track.targets import TargetFollower
from headrace.pipeline.track.tracker import Follower, ObjectTracker, Tracker, TrackIds

TRACKERS: Mapping[str, str] = {
    "iou": "overlap and constant velocity; built in, the fastest",
    "sort": "Kalman filter and best total overlap (SORT)",
    "bytetrack": "SORT, with objects of low confidence in a second round (ByteTrack)",
    "ocsort": "SORT that trusts what it saw more than what it expects (OC-SORT)",
    "cbiou": "SORT with enlarged boxes, for fast or small objects (C-BIoU)",
    "botsort": "ByteTrack that takes the camera's motion out of the frame (BoT-SORT)",
    "nviou": "the original's IOU: overlap and size, no prediction",
    "nvsort": "the original's NvSORT: Kalman filter, detections in stages",
    "nvdcf-max-perf": "the original's NvDCF, smallest: colours, 12 x 12 features",
    "nvdcf-perf": "the original's NvDCF: colours, 18 x 18 features",
    "nvdcf-accuracy": "the original's NvDCF: colours and edges, 24 x 24 features, re-association",
    "nvdeepsort": "the original's NvDeepSORT: Kalman filter and the looks of a ReID model",
    "nvmot": "a low-level tracker library of your own (ll-lib-file), in a worker process",
}

_COMMON = (
    Setting("fill_gaps", True, "show tracked objects in frames that no model ran on"),
    Setting("max_gap", 30, "in that many frames in a row at most", 0, 1e9),
    Setting("gap_decay", 0.95, "tracker confidence of such an object, for each frame", 0, 1),
    Setting("match_classes", True, "objects of different classes are never one track"),
    Setting("operate_on_gie_id", (), "only objects of these models, also those with a parent"),
    Setting("operate_on_class_ids", (), "only objects of these classes"),
    Setting("reid", "", "an ONNX model of looks: a lost object that comes back keeps its id"),
    Setting("reid_pixels", "imagenet", "what its input is: imagenet, unit, signed or bytes"),
    Setting("reid_similarity", 0.7, "least similarity (cosine) of a look with a lost one", -1, 1),
    Setting("reid_gap", 300, "frames after which a lost object is forgotten", 0, 1e9),
    Setting("reid_interval", 8, "frames between two looks of an object", 1, 1e9),
    Setting("reid_across", False, "an object in two sources has one id, by its look alone"),
    Setting("reid_output", False, "put the looks into the results"),
)

_OF_USER_LIBRARIES = ("operate_on_gie_id", "operate_on_class_ids", "reid_output")


def tracker_settings(name: str) -> tuple[Setting, ...]:
    """The settings of a tracker, its own first, with their defaults.

    Raises:
        ConfigError: there is no such tracker, or its library is not installed.
    """
    if name == "iou":
        return settings_of(IouSettings) + _COMMON
    if name in LIBRARY_TRACKERS:
        return library_settings(library_tracker(name)) + _COMMON
    if name in presets():
        return _preset_settings(preset_entries(name)) + _COMMON
    if name == "nvmot":
        from headrace.pipeline.track.user_library import UserLibrarySettings

        own = settings_of(UserLibrarySettings)
        return own + tuple(s for s in _COMMON if s.name in _OF_USER_LIBRARIES)
    raise ConfigError(
        f"there is no tracker {name!r}",
        where="tracker",
        expected="one of " + ", ".join(TRACKERS) + ", or a YAML file",
        fix=did_you_mean(nearest(name, TRACKERS)),
    )


def settings_of_tracker(spec: str | Path) -> tuple[str, tuple[Setting, ...]]:
    """The name of a tracker and its settings, with the values of `spec` as defaults.

    Raises:
        ConfigError: as `open_tracker`.
    """
    asked = _parse(spec)
    if asked.entries is None:
        name, settings = asked.name, tracker_settings(asked.name)
        given = check_settings(asked.settings, settings, tracker=name, where=asked.where)
    else:
        name = asked.name or read_original(asked.entries, asked.where, {}).name
        settings = _preset_settings(asked.entries) + _COMMON
        own = {s.name: s for s in settings}
        given = check_settings(
            {k: v for k, v in asked.settings.items() if k in own}, settings, tracker=name,
            where=asked.where,
        )  # fmt: skip
    return name, tuple(replace(s, default=given.get(s.name, s.default)) for s in settings)


def tracker_text(spec: str | Path, changes: Mapping[str, Any]) -> str:
    """A YAML file of a tracker with changed settings: the original's sections where it has them.

    Raises:
        ConfigError: as `open_tracker`.
    """
    asked = _parse(spec)
    if asked.entries is None:
        rows = {**asked.settings, **changes}
        return "".join([f"tracker: {asked.name}\n", *(f"{k}: {v}\n" for k, v in rows.items())])
    values = {path: entry.value for path, entry in asked.entries.items()}
    merged: dict[str, dict[str, Any]] = {}
    for path, value in [*values.items(), *asked.settings.items(), *changes.items()]:
        key = find_key(path)
        section, name = (key.section, key.name) if key else path.rpartition(".")[::2]
        merged.setdefault(section, {})[name] = int(value) if isinstance(value, bool) else value
    lines = ["%YAML:1.0\n"]
    for section, rows in merged.items():
        lines += [f"{section}:\n"] if section else []
        lines += [f"{'  ' * bool(section)}{name}: {value}\n" for name, value in rows.items()]
    return "".join(lines)


def open_tracker(
    spec: str | Path,
    *,
    operate_on_gie_id: int | Iterable[int] | None = None,
    operate_on_class_ids: int | Iterable[int] | None = None,
    ids: TrackIds | None = None,
    **settings: object,
) -> Tracker:
    """Make a tracker.

    Args:
        spec: a name of `TRACKERS`, with settings if need be (`iou:max_age=30,min_iou=0.3`), or a
            YAML file: `tracker: NAME` and settings, or the original's `ll-config-file`.
        operate_on_gie_id: track objects of these models only, also those that have a parent. None
            or -1 is objects of all models that have no parent.
        operate_on_class_ids: track objects of these classes only. None or -1 is all.
        ids: gives out the numbers of tracks; trackers of one pipeline share one.
        settings: more settings, see `tracker_settings`; they win over those in `spec`.

    A low-level library of the user that cannot be driven is not loaded: a built-in tracker is
    returned, with a warning among its notices.

    Raises:
        ConfigError: an unknown name or setting, a value that does not fit, a file that cannot be
            read, or a library that is not installed.
        CustomLibraryError: there is no file of a library of the user.
    """
    asked = _parse(spec)
    values = dict(asked.settings)
    values |= {key.replace("-", "_"): value for key, value in settings.items()}
    for key, argument in (
        ("operate_on_gie_id", operate_on_gie_id),
        ("operate_on_class_ids", operate_on_class_ids),
    ):
        if argument is not None:
            values[key] = [argument] if isinstance(argument, int) else list(argument)
    ids = ids or TrackIds()
    name, where = asked.name, asked.where
    notices: tuple[Finding, ...] = ()
    live = None
    if name == "nvmot":
        return _user_library(values, ids, where)
    common = {s.name: values.pop(s.name) for s in _COMMON if s.name in values}
    if asked.entries is not None:
        original = read_original(asked.entries, where, values)
        name, notices = asked.name or original.name, original.notices
        common.setdefault("match_classes", original.values["match_classes"])
        live = LiveValues(original.values)
        maker, looks = _target_maker(original, live, ids, asked, common)
        notices += looks
    else:
        values = check_settings(values | common, tracker_settings(name), tracker=name, where=where)
        common = {s.name: values.pop(s.name) for s in _COMMON if s.name in values}
        maker = _follower_maker(name, values, ids, where)
    common = {s.name: s.default for s in _COMMON} | check_settings(
        common, _COMMON, tracker=name, where=where
    )
    own_model = asked.entries is not None and original.values["reid"] > 0
    if common["reid"] and not own_model:
        maker = _with_looks(maker, ids, common, where)
    selection = Selection(
        _numbers(common["operate_on_gie_id"]),
        _numbers(common["operate_on_class_ids"]),
        common["match_classes"],
    )
    return ObjectTracker(
        name,
        maker,
        selection,
        fill_gaps=common["fill_gaps"],
        max_gap=common["max_gap"],
        decay=common["gap_decay"],
        give_looks=common["reid_output"] or (own_model and original.values["reid_output"]),
        notices=notices,
        live=live,
        folder=asked.folder,
    )


def _user_library(values: dict[str, Any], ids: TrackIds, where: str) -> Tracker:
    """A library of the user."""
    # worker processes and readers of ELF files, which no other tracker needs
    from headrace.pipeline.track.user_library import UserLibrarySettings, UserLibraryTracker

    allowed = tracker_settings("nvmot")
    values = check_settings(values, allowed, tracker="nvmot", where=where)
    common = {name: values.pop(name, ()) for name in _OF_USER_LIBRARIES}
    gies, classes = common["operate_on_gie_id"], common["operate_on_class_ids"]
    selection = Selection(_numbers(gies), _numbers(classes))
    settings = UserLibrarySettings(**values)
    give_looks = bool(common["reid_output"])
    try:
        return UserLibraryTracker(settings, selection, ids, give_looks=give_looks)
    except CustomLibraryError as error:
        if not Path(settings.library).is_file():
            raise
        tracker = _in_its_place(
            settings.config, ids=ids, operate_on_gie_id=gies or None,
            operate_on_class_ids=classes or None,
        )  # fmt: skip
        assert isinstance(tracker, ObjectTracker)
        text = "not loaded: {error}; the built-in tracker {name} tracks in its place"
        data = {"error": f"{error:brief}", "name": tracker.name}
        where = settings.library
        tracker.notices.append(Finding("tracker-library", "warning", text, where, data))
        return tracker


def _in_its_place(config: str, **arguments: Any) -> Tracker:
    """Return the tracker of the original that reads `config`; else `iou`."""
    from headrace.config.app.tracker import sample_tracker

    path = Path(config)
    try:
        return open_tracker(path if path.is_file() else sample_tracker(path), **arguments)
    except ConfigError:  # a file of the library's own
        return open_tracker("iou", **arguments)


def _preset_settings(entries: Mapping[str, FileSetting]) -> tuple[Setting, ...]:
    """The keys of a file of the original that are numbers or switches, with its values."""
    given = {
        key.path: entry.value
        for path, entry in entries.items()
        if (key := find_key(path)) is not None
    }
    settings: dict[str, Setting] = {}
    for key in original_keys().values():
        if key.to and find_key(key.name) is key and isinstance(key.default, bool | int | float):
            default = type(key.default)(given.get(key.path, key.default))
            settings[key.name] = Setting(key.name, default, key.text, key.low, key.high)
    return tuple(settings.values())


def _target_maker(
    original: OriginalTracker,
    live: LiveValues,
    ids: TrackIds,
    asked: _Asked,
    common: Mapping[str, Any],
) -> tuple[Callable[[], Follower], tuple[Finding, ...]]:
    """Factory of the state of a source, and notices about its ReID model."""
    values, model = original.values, None
    notices: tuple[Finding, ...] = ()
    if values["reid"]:
        named = str(common.get("reid") or values["reid_model"])
        path = asked.folder / named
        if named and path.is_file():
            tells = common.get("reid") in (None, "") or INPUT_VALUES & original.given
            model = look_model_of(values, path) if tells else _look_model(path, common, asked.where)
        else:
            reason = f"there is no file {path}" if named else "it names no onnxFile"
            text = f"looks do not count: reidType={values['reid']}, but {reason}"
            keys = [key.removeprefix("ReID.") for key in asked.entries or () if "ReID." in key]
            if keys:
                text += f"; without effect: {', '.join(keys)}"
            notices = (Finding("tracker-reid", "warning", text, original.where),)
    return lambda: TargetFollower(live, ids, model), notices


def _with_looks(
    maker: Callable[[], Follower], ids: TrackIds, common: Mapping[str, Any], where: str
) -> Callable[[], Follower]:
    """The same with a ReID model beside it."""
    model = _look_model(Path(common["reid"]), common, where)
    peers: WeakSet[LookFollower] | None = WeakSet() if common["reid_across"] else None
    return lambda: LookFollower(
        maker(),
        model,
        ids,
        least=common["reid_similarity"],
        gap=common["reid_gap"],
        interval=common["reid_interval"],
        peers=peers,
    )


def _look_model(path: Path, common: Mapping[str, Any], where: str) -> LookModel:
    """Open a ReID model by the shape of its own input."""
    pixels = common.get("reid_pixels", "imagenet")
    if pixels not in PIXELS:
        raise ConfigError(
            f"reid_pixels={pixels} is not possible",
            where=where,
            expected="one of " + ", ".join(PIXELS),
        )
    scale, offsets = PIXELS[pixels]
    return LookModel(path, scale=scale, offsets=offsets)


def _follower_maker(
    name: str, values: Mapping[str, Any], ids: TrackIds, where: str
) -> Callable[[], Follower]:
    """Factory of the state of a source."""
    if name == "iou":
        settings = IouSettings(**values)
        return lambda: IouFollower(settings, ids)
    kind = library_tracker(name)
    try:
        kind(**values)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the tracker {name} refuses its settings: {error}", where=where
        ) from None
    return lambda: LibraryFollower(kind, values, ids)


def _numbers(values: tuple[int, ...]) -> frozenset[int] | None:
    return None if not values or values == (-1,) else frozenset(values)


class _Asked(NamedTuple):
    """A tracker as `spec` asks for it: by name, or by the keys of a file of the original."""

    name: str
    settings: dict[str, Any]
    where: str  # for messages
    entries: dict[str, FileSetting] | None = None
    folder: Path = Path()  # that paths in it start at


def _parse(spec: str | Path) -> _Asked:
    text = str(spec).strip()
    if isinstance(spec, Path) or text.endswith((".yml", ".yaml")):
        return _read(Path(spec))
    name, settings = split_settings(text)
    for key, value in settings.items():
        if not value:
            raise ConfigError(
                f"{key!r} has no value",
                where=f"tracker {text!r}",
                expected="name=value, such as iou:max_age=30,min_iou=0.3",
            )
    return _named(name, dict(settings), f"tracker {text!r}")


def _named(name: str, settings: dict[str, Any], where: str) -> _Asked:
    return _Asked(name, settings, where, preset_entries(name) if name in presets() else None)


def _read(path: Path) -> _Asked:
    entries = read_entries(path)
    named = entries.pop("tracker", None)
    if named is None:
        return _Asked("", {}, str(path), entries, path.parent)
    values = {key.replace("-", "_"): entry.value for key, entry in entries.items()}
    return _named(str(named.value), values, str(path))
