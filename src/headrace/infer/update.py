"""Another model in place of the running one, without losing a frame. Source: spec D.8."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._core.errors import ConfigError, EngineError, HeadraceError
from headrace._core.findings import Finding
from headrace._core.heap import trim_heap
from headrace._core.text import error_text
from headrace._core.threads import start_thread
from headrace.config import ModelConfig
from headrace.config.class_attrs import ClassAttrs
from headrace.infer.history import ModelVersion
from headrace.infer.loaded_model import Model

if TYPE_CHECKING:
    from headrace.infer.history import How, ModelHistory
    from headrace.infer.inferencer import Inferencer
    from headrace.infer.record import Record

SUFFIXES = (".txt", ".yml", ".yaml")

# What the running model keeps, whatever the new file says.
_KEPT = (
    "batch_size",
    "gpu_id",
    "gie_unique_id",
    "network_type",
    "process_mode",
    "classifier_threshold",
    "segmentation_threshold",
    "disable_output_host_copy",
    "tensor_meta_pool_size",
)
# Keys of the element: read once at start, never from the file of an update.
_ELEMENT = (
    "interval",
    "operate_on_gie_id",
    "operate_on_class_ids",
    "input_object_min_width",
    "input_object_min_height",
    "input_object_max_width",
    "input_object_max_height",
    "secondary_reinfer_interval",
    "classifier_async_mode",
    "classifier_type",
    "profile",
    "maintain_aspect_ratio",
    "symmetric_padding",
    "centre_crop",
    "filter_out_class_ids",
    "crop_objects_to_roi_boundary",
    "output_instance_mask",
    "output_tensor_meta",
    "scaling_filter",
    "scaling_compute_hw",
    "input_tensor_from_meta",
    "raw_output_file_write",
    "stabilize_buffer_count",
)
_PER_CLASS = ("num_detected_classes", "all_classes", "classes")
_IF_ABSENT = ("labelfile_path", "custom_lib_path", "parse_bbox_func_name")
# An update by engine alone takes these from the running model too, and nothing else.
_WITH_ENGINE = ("network_mode", "mean_file", "net_scale_factor", "offsets", "model_color_format")


def updated_config(
    running: ModelConfig,
    *,
    config: Path | None = None,
    engine: Path | None = None,
    model: Path | None = None,
) -> ModelConfig:
    """The config that an update really runs.

    Args:
        running: of the model that runs now.
        config: the new config file; the running model's batch size, ids, thresholds and
            per-class settings stay, and so do the keys that belong to the element.
        engine: the new engine file. Cluster mode, input order, `infer-dims` and the names of
            classifier and segmentation parsers fall back to their defaults.
        model: a new ONNX file for the running config, of which everything else stays; where a bare
            model runs, what a config would say is read from the new one.

    Raises:
        ConfigError: not exactly one of them is given; a file's name does not end as it should; it
            cannot be read.
    """
    if sum(path is not None for path in (config, engine, model)) != 1:
        raise ConfigError("an update needs a config, an engine or a model", expected="one of them")
    kept: dict[str, Any] = {name: getattr(running, name) for name in (*_KEPT, *_ELEMENT)}
    if running.network_type.has_class_attrs:
        kept |= {name: getattr(running, name) for name in _PER_CLASS}
    if model is not None:
        if model.suffix.lower() != ".onnx":
            raise ConfigError(
                f"{model.name} is no model for an update", where=str(model), expected="a .onnx file"
            )
        if not model.is_file():
            raise ConfigError("there is no such model", where=str(model))
        if running.path.suffix.lower() == ".onnx":
            return ModelConfig.load(model).with_overrides(**kept)
        return running.with_overrides(onnx_file=model, model_engine_file=None)
    if config is not None:
        if config.suffix not in SUFFIXES:
            raise ConfigError(
                f"{config.name} is not a config for an update",
                where=str(config),
                expected=f"a name that ends in {', '.join(SUFFIXES)}",
            )
        new = ModelConfig.load(config)
        kept |= {n: getattr(running, n) for n in _IF_ABSENT if getattr(new, n) is None}
        return new.with_overrides(**kept)
    kept |= {name: getattr(running, name) for name in (*_WITH_ENGINE, *_IF_ABSENT)}
    return ModelConfig(model_engine_file=engine, **kept)


def keys_not_taken(running: ModelConfig, path: Path) -> list[str]:
    """Keys of a new config that an update leaves as they run, where they differ."""
    new, keys = ModelConfig.load(path), []
    for name in (*_KEPT, *_ELEMENT):
        origin = new.origin(name)
        if origin.kind == "file" and getattr(new, name) != getattr(running, name):
            keys.append(origin.key or name)
    if not running.network_type.has_class_attrs:
        return keys
    origin = new.origin("num_detected_classes")
    if origin.kind == "file" and new.num_detected_classes != running.num_detected_classes:
        keys.append(origin.key or "num-detected-classes")
    for number, attrs in ((-1, new.all_classes), *sorted(new.classes.items())):
        present = running.classes.get(number, running.all_classes)
        for name in ClassAttrs.__slots__:
            origin = new.origin(name, class_id=number)
            if origin.kind == "file" and getattr(attrs, name) != getattr(present, name):
                keys.append(origin.key or name)
    return list(dict.fromkeys(keys))


def _steps(
    history: ModelHistory, paths: Mapping[str, Path], cfg: ModelConfig
) -> tuple[tuple[str, Path], ...]:
    """The updates that lead to a config; the last one alone where it is enough."""
    steps = tuple(paths.items())
    if updated_config(history.first, **paths).values() == cfg.values():
        return steps
    return (*history.latest.steps, *steps)


def reopened(inferencer: Inferencer) -> Inferencer:
    """Load the model of an inferencer anew, beside it: it may be stuck.

    Returns:
        Another one, which goes on with the counts of the first.

    Raises:
        HeadraceError: it cannot be loaded.
    """
    record, options = inferencer.record.successor(), inferencer.load_options
    from headrace.custom.guard.process import deaths_go_on

    with deaths_go_on():
        model = Model.load(inferencer.config, options, record, inferencer.model.device)
    other = type(inferencer)(
        model, record, options=options, streams=inferencer.streams, name=inferencer.name
    )
    other.interval, other.history = inferencer.interval, inferencer.history
    other.on_raw_output = inferencer.on_raw_output
    other.history.restarted(record)
    return other


class ModelUpdater:
    """Loads models beside a running one and exchanges them between two batches.

    Args:
        inferencer: the one whose model is exchanged.
        on_updated: called with (status, path) after each attempt, in the loading thread; 0 is
            success, anything else failure, and the old model keeps running.

    Attributes:
        errors: why attempts failed, in order.
        told: the same for those who may not read the files: a config's lines are not quoted.
    """

    def __init__(
        self, inferencer: Inferencer, on_updated: Callable[[int, Path], None] | None = None
    ) -> None:
        self._inferencer = inferencer
        self._on_updated = on_updated
        self._thread: threading.Thread | None = None
        self.errors: list[HeadraceError] = []
        self.told: list[str] = []

    def update(
        self,
        *,
        config: str | Path | None = None,
        engine: str | Path | None = None,
        model: str | Path | None = None,
        version: int | ModelVersion | None = None,
        on_updated: Callable[[int, Path], None] | None = None,
    ) -> None:
        """Start loading; the new model takes over before the next batch after it is ready.

        Args:
            config, engine, model, version: one of them, see `Inferencer.update_model`.
            on_updated: for this attempt, instead of that of the updater.

        Raises:
            ConfigError: an update is under way already, not exactly one is given, or there was no
                such version.
        """
        if self._thread is not None and self._thread.is_alive():
            raise ConfigError(
                "Trying to update model too frequently",
                expected="one update at a time",
                fix="wait for on_updated before the next one",
            )
        given = (("config", config), ("engine", engine), ("model", model))
        paths = {kind: Path(p) for kind, p in given if p is not None}
        if len(paths) + (version is not None) != 1:
            raise ConfigError(
                "an update needs a config, an engine, a model or a version", expected="one of them"
            )
        earlier = version if isinstance(version, ModelVersion) else None
        if isinstance(version, int):
            versions = self._inferencer.history.versions
            earlier = versions.get(version)
            if earlier is None:
                raise ConfigError(
                    f"there was no version {version}", expected=", ".join(map(str, versions))
                )
        self._thread = start_thread(
            partial(self._load, paths, earlier, on_updated or self._on_updated),
            name="headrace-model-load",
            failed=self._callback_failed,
        )

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until no update is being loaded; False if `timeout_s` is over first."""
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _callback_failed(self, error: BaseException) -> None:
        self._inferencer.warn(
            "update-callback-failed",
            f"on_updated, which hears that a model was updated, failed: {error_text(error)}",
        )

    def _load(
        self,
        paths: dict[str, Path],
        earlier: ModelVersion | None,
        on_updated: Callable[[int, Path], None] | None,
    ) -> None:
        status, history = 0, self._inferencer.history
        how: How
        path = next(iter(paths.values())) if earlier is None else earlier.path
        try:
            if earlier is None:
                cfg = updated_config(self._inferencer.config, **paths)
                steps, how = _steps(history, paths, cfg), "update"
            else:
                earlier.check_unchanged()
                cfg, steps = earlier.config, earlier.steps
                how = "rollback" if earlier.number in history.versions else "update"
            model = self._accepted(cfg)
            number = None if earlier is None else earlier.number
            try:
                version = history.propose(path, cfg, how, number, steps)
                self._inferencer.replace(model)
            except EngineError:
                model.close()
                raise
            if passed := keys_not_taken(self._inferencer.config, path) if "config" in paths else []:
                text = "an update does not take these keys, and the present values stay: {keys}"
                self._inferencer.record.notices.append(
                    Finding(
                        "keys-not-taken",
                        "warning",
                        text,
                        str(path),
                        {"keys": passed},
                        remedies=("start again with the new config",),
                    )
                )
            name = history.shown(path)
            text = f"version {version.number} is ready, {name}: it runs from the next batch on"
            data = {"version": version.number, "run": len(history.runs)}
            self._inferencer.record.notices.append(
                Finding("model-updated", "info", text, self._inferencer.name, data)
            )
        except BaseException as cause:  # the old model runs on, and a warning reports it
            status = 1
            error: BaseException = cause
            if not isinstance(error, HeadraceError):
                error = EngineError(f"loading failed: {type(cause).__name__}: {cause}")
            self.errors.append(error)
            self.told.append(_without_lines(error) if "config" in paths else str(error))
            history.refuse(path, self.told[-1])
            self._inferencer.warn(
                "model-not-updated", f"the model was not updated: {error}", str(path)
            )
        if on_updated is not None:
            on_updated(status, path)

    def _accepted(self, cfg: ModelConfig) -> Model:
        """The loaded model, if its batch and input size fit the running one.

        Raises:
            EngineError: they do not.
        """
        inferencer = self._inferencer
        from headrace.custom.guard.process import deaths_go_on

        with deaths_go_on():
            model = Model.load(
                cfg, inferencer.load_options, inferencer.record, inferencer.model.device
            )
        size = (inferencer.network.width, inferencer.network.height)
        new_size = (model.network.width, model.network.height)
        batch_size, new_max_batch = inferencer.config.batch_size, model.session.max_batch
        where = str(model.engine_path or cfg.path)
        try:
            if new_size != size:
                raise EngineError(
                    f"the new model's input is {new_size[0]}x{new_size[1]} pixels",
                    where=where,
                    expected=f"{size[0]}x{size[1]} like the running one",
                )
            if new_max_batch < batch_size:
                raise EngineError(
                    f"the new engine takes batches of up to {new_max_batch}",
                    where=where,
                    expected=f"at least {batch_size}, the running batch-size",
                )
            _try_once(model)
        except EngineError:
            model.close()
            raise
        return model


def _without_lines(error: BaseException) -> str:
    """Name the place of an error in a config, and nothing that stands in it or beside it."""
    if not isinstance(error, ConfigError):
        return str(error)
    place = Path(error.finding.where or "").name or "the config"
    return f"{place} cannot be used as it is; the service's log says why"


def _try_once(model: Model) -> None:
    """Run a model once on zeros.

    Raises:
        EngineError: it does not run.
    """
    spec = model.session.inputs[0]
    dims = [d if isinstance(d, int) else None for d in spec.shape[1:]]
    if model.preprocessor is not None and None not in dims:
        with model.device.entered():
            model.session.run(model.feeds(np.zeros((1, *dims), spec.dtype)))


class ModelExchange:
    """Counts the batches of each model, and closes a replaced one after the last of them.

    Attributes:
        current: new batches are begun with it.
        waiting: takes over before the next batch; None if there is none.
    """

    def __init__(self, model: Model, record: Record) -> None:
        self.current = model
        self.waiting: Model | None = None
        self._record = record
        self._in_flight: Counter[int] = Counter()  # batches between begin and complete, per model
        self._replaced: list[Model] = []

    def propose(self, model: Model) -> None:
        """Let a model wait for its turn.

        Raises:
            EngineError: another one is waiting already. Source: spec D.8.
        """
        if self.waiting is not None:
            raise EngineError("Trying to update model too frequently", where=str(model.config.path))
        self.waiting = model

    def exchange(self) -> None:
        """Make the waiting model the current one; batches of the old one finish with it."""
        model, self.waiting = self.waiting, None
        assert model is not None
        old, self.current = self.current, model
        self._record.keep([n for n in old.all_notices() if n.level == "warning"])
        self._replaced.append(old)
        self._close_replaced()

    def take(self) -> Model:
        """The current model, for one batch; `release` it afterwards."""
        with self._record.lock:
            self._in_flight[id(self.current)] += 1
        return self.current

    def release(self, model: Model) -> None:
        """End the use of a model by one batch."""
        with self._record.lock:
            self._in_flight[id(model)] -= 1
        if self._replaced:
            self._close_replaced()

    def close(self) -> None:
        """Close all models."""
        for model in (*self._replaced, self.current, self.waiting):
            if model is not None:
                model.close()

    def _close_replaced(self) -> None:
        with self._record.lock:
            done = [m for m in self._replaced if not self._in_flight[id(m)]]
            self._replaced = [m for m in self._replaced if self._in_flight[id(m)]]
        for model in done:
            model.close()
        if done:
            trim_heap()  # each was loaded by a thread of its own, with a heap of its own
