"""nvinfer: a model at work on the batches that pass, in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from headrace._core.errors import ConfigError, HeadraceError
from headrace.config import ModelConfig
from headrace.gstreamer.elements.bindings import BaseTransform, GObject, Gst, structure_of
from headrace.gstreamer.elements.element import NVMM, InPlace, reported, through, timed, weakly
from headrace.gstreamer.elements.in_flight import InFlight
from headrace.gstreamer.elements.preprocess import add_region_results, prepared_tensors
from headrace.gstreamer.elements.properties import INT_MAX, Choices, Property
from headrace.gstreamer.elements.raw_output import RawOutputCallback, address_of
from headrace.gstreamer.elements.tree import add_results, to_metas
from headrace.gstreamer.pyds.events import INTERVAL_UPDATE
from headrace.infer.batch import Batch
from headrace.infer.inferencer import Inferencer
from headrace.infer.update import ModelUpdater

_MODES = Choices("GstNvInferProcessModeType", ((1, "primary"), (2, "secondary")))
PROPERTIES = {
    "gpu-id": Property("uint", 0, "number of the GPU, where there is one", 0, INT_MAX),
    "config-file-path": Property("str", "", "configuration of the model"),
    "unique-id": Property("uint", 15, "number of the model; its objects have it"),
    "process-mode": Property("enum", 1, "whole frames or objects", choices=_MODES),
    "batch-size": Property("uint", 1, "most items the engine takes at once", 1, 1024),
    "interval": Property("uint", 0, "batches left out after each one", 0, INT_MAX),
    "infer-on-gie-id": Property("int", -1, "objects of this model only; -1: of any", -1),
    "infer-on-class-ids": Property("str", "", "objects of these classes only: 0:2"),
    "filter-out-class-ids": Property("str", "", "classes that are left out: 0;2"),
    "model-engine-file": Property("str", "", "built engine"),
    "output-tensor-meta": Property("bool", False, "attach raw outputs"),
    "output-instance-mask": Property("bool", False, "attach masks"),
    "input-tensor-meta": Property("bool", False, "take tensors of nvdspreprocess"),
    "clip-object-outside-roi": Property(
        "bool", True, "cut objects at the edges of a tensor's region"
    ),
    "crop-objects-to-roi-boundary": Property("bool", False, "cut objects at the region's edge"),
    "raw-output-file-write": Property("bool", False, "write raw outputs to files"),
    "raw-output-generated-callback": Property("pointer", None, "a function of C, or none"),
    "raw-output-generated-userdata": Property("pointer", None, "for that function"),
    "strongly-typed": Property("bool", False, "accepted; tensors have the types of the model"),
    "dynamic-properties": Property("str", "", "name=value;name=value, stored"),
}

DROPPED = Gst.FlowReturn.CUSTOM_SUCCESS  # of GstBaseTransform: the element pushes it itself
REPORT_EVERY = 100  # buffers; judging what the model finds costs time

# property -> field of the configuration, and how its value is read
_FIELDS: dict[str, tuple[str, Any]] = {
    "gpu-id": ("gpu_id", int),
    "unique-id": ("gie_unique_id", int),
    "process-mode": ("process_mode", int),
    "batch-size": ("batch_size", int),
    "interval": ("interval", int),
    "infer-on-gie-id": ("operate_on_gie_id", int),
    "infer-on-class-ids": ("operate_on_class_ids", lambda text: _numbers(text, ":")),
    "filter-out-class-ids": ("filter_out_class_ids", lambda text: _numbers(text, ";")),
    "model-engine-file": ("model_engine_file", Path),
    "output-tensor-meta": ("output_tensor_meta", bool),
    "output-instance-mask": ("output_instance_mask", bool),
    "input-tensor-meta": ("input_tensor_from_meta", bool),
    "crop-objects-to-roi-boundary": ("crop_objects_to_roi_boundary", bool),
    "raw-output-file-write": ("raw_output_file_write", bool),
    "strongly-typed": ("strongly_typed", bool),
    "dynamic-properties": ("dynamic_properties", str),
}

_UPDATES = {"config-file-path": "config", "model-engine-file": "engine"}
_NAMES = {"model-engine-file"}  # an empty one is none
_OBJECTS = {"infer-on-gie-id", "infer-on-class-ids"}  # one of both set: the file's are void


def _numbers(text: str, separator: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.replace(";", separator).split(separator) if part)


class NvInfer(InPlace):
    """Runs a model on frames or objects and adds its results to their metadata."""

    __gtype_name__ = "GstNvInfer"
    ABOUT = ("NvInfer plugin", "NvInfer Plugin", "Runs a model on batches")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES
    # status (0: success) and path, after the start and after each update of the model
    __gsignals__: ClassVar = {"model-updated": (GObject.SignalFlags.RUN_LAST, None, (int, str))}

    def __init__(self) -> None:
        super().__init__()
        self._inferencer: Inferencer | None = None
        self._config: ModelConfig | None = None
        self._failed: HeadraceError | None = None
        self._updater: ModelUpdater | None = None
        self._in_flight: InFlight[Any] | None = None
        self._buffers = self._completed = 0
        self._raw_output: RawOutputCallback | None = None

    def changed(self, name: str) -> None:
        """Read the configuration at once: applications ask for its batch size right after.

        A running element loads the new model beside the old one.
        """
        if self._inferencer is not None:
            self._update(name)
        if name != "config-file-path" or self._inferencer is not None:
            return
        try:
            self._config = config = self.read_config(Path(self.values[name]))
        except HeadraceError as error:  # reported when the element starts, as in the original
            self._failed = error
            return
        self._failed = None
        for key, (field, _) in _FIELDS.items():
            value = getattr(config, field)
            if key not in self.assigned and isinstance(value, bool | int):
                self.values[key] = value

    def _update(self, name: str) -> None:
        """Load the model of a property that is set while the element runs. Source: spec D.8."""
        kind = _UPDATES.get(name)
        if kind is None:
            return
        path = self.values[name]
        inferencer: Any = self._inferencer
        try:
            told = weakly(self._updated)
            self._updater = inferencer.update_model(**{kind: path}, on_updated=told)
        except HeadraceError as error:  # one is under way
            inferencer.warn("model-not-updated", str(error), path)
            self._updated(1, path)

    def _updated(self, status: int, path: str | Path) -> None:
        """Tell how an update ended, in the thread that loads."""
        self._report()
        if status == 0 and str(path) == self.values["config-file-path"]:
            self._config = self.read_config(Path(path))  # for the next start
        self.emit("model-updated", status, str(path))

    def read_config(self, path: Path) -> ModelConfig:
        """Read the file that `config-file-path` names."""
        return ModelConfig.load(path)

    @reported(False)
    def do_start(self) -> bool:
        """Load the model and build its engine."""
        self._inferencer = Inferencer.from_config(
            self._loaded().with_overrides(**self.asked()),
            streams=None,
            clip_to_roi=self.values["clip-object-outside-roi"],
        )
        if function := address_of(self.values["raw-output-generated-callback"]):
            data = address_of(self.values["raw-output-generated-userdata"])
            self._raw_output = RawOutputCallback(function, data)
            self._inferencer.on_raw_output = self._raw_output
        most = max(2, self._inferencer.streams + 1)
        src = self.get_static_pad("src")
        self._in_flight = InFlight(src, self._complete, self.post_error, most)
        self.emit("model-updated", 0, self.values["config-file-path"])
        return True

    def asked(self) -> dict[str, Any]:
        """Return the config's fields that the application set."""
        void = {"operate_on_gie_id": -1, "operate_on_class_ids": ()}
        asked: dict[str, Any] = void if self.assigned & _OBJECTS else {}
        for key, (field, read) in _FIELDS.items():
            if key in self.assigned and not (key in _NAMES and self.values[key] in (None, "")):
                asked[field] = read(self.values[key])
        return asked

    def _loaded(self) -> ModelConfig:
        if self._failed is not None:
            raise self._failed
        if self._config is None:
            name = type(self).__name__.lower()
            raise ConfigError(f"{name} has no config-file-path", where=self.get_name())
        return self._config

    def do_stop(self) -> bool:
        """Close the model."""
        if self._in_flight is not None:
            self._in_flight.close()
            self._in_flight = None
        if self._updater is not None:
            self._updater.wait()
            self._updater = None
        if self._inferencer is not None:
            self._conclude()
            self._inferencer.close()
            self._inferencer = self._raw_output = None
        return True

    def process(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Begin the work on a batch; the thread behind the engine pushes it."""
        batch = self.batch_of(buffer)
        assert self._inferencer is not None
        assert self._in_flight is not None
        flow = self._in_flight.room()
        if flow != Gst.FlowReturn.OK:
            return flow
        frames, images, meta_pairs = to_metas(batch)
        work = Batch(images, [meta for meta, _ in meta_pairs], [self._buffers] * len(frames))
        self._buffers += 1
        regions = []
        if self._inferencer.config.input_tensor_from_meta:
            regions = prepared_tensors(batch, frames, meta_pairs)
            work.tensors = [tensor for tensor, _ in regions]
        pending = self._inferencer.begin(work)
        self._in_flight.add(buffer, (hash(buffer), batch, frames, meta_pairs, regions, pending))
        return DROPPED  # the thread behind the engine pushes it

    @timed
    def _complete(self, work: Any) -> None:
        """Add the engine's results to the metadata; called in order, by one thread."""
        address, batch, frames, meta_pairs, regions, pending = work
        assert self._inferencer is not None
        if self._raw_output is not None:
            self._raw_output.buffer = 0 if pending.model.asynchronous else address
        self._inferencer.complete(pending)
        with batch.meta_mutex:
            for frame, (meta, before) in zip(frames, meta_pairs, strict=True):
                add_results(batch, frame, meta, before)
                if not self._inferencer.secondary:
                    frame.bInferDone = int(meta.inferred)
            for tensor, shown in regions:
                add_region_results(batch, tensor.rois, shown)
        for source_id in batch.ended:
            self._inferencer.end_of_stream(source_id)
        if self._completed % REPORT_EVERY == 0:
            self._report()
        self._completed += 1

    def do_sink_event(self, event: Gst.Event) -> bool:
        """Let the buffers before an event go first."""
        if self._in_flight is not None:
            if event.type == Gst.EventType.FLUSH_STOP:
                self._in_flight.restart()
            elif event.type & Gst.EventTypeFlags.SERIALIZED:
                self._in_flight.drain()
            if event.type == Gst.EventType.EOS:  # before NULL, which closes the bus
                self._conclude()
        structure = structure_of(event)
        if structure is not None and structure.get_name() == INTERVAL_UPDATE:
            self.values["interval"] = structure.get_value("interval")
            if self._inferencer is not None:
                self._inferencer.interval = self.values["interval"]
            return True
        return bool(BaseTransform.do_sink_event(self, event))

    def _conclude(self) -> None:
        """Judge the results of the whole stream."""
        assert self._inferencer is not None
        self._inferencer.conclude()
        self._report()

    def _report(self) -> None:
        """Put notices of the model on the bus, each once."""
        assert self._inferencer is not None
        self.post_notices(self._inferencer.notices)


class NvInferBin(NvInfer):
    """`nvinfer` under the name of the bin that has a queue before it in the original."""

    __gtype_name__ = "GstNvInferBin"
    ABOUT = ("NvInfer Bin", "NvInfer Plugin", "Runs a model on batches")
    __gsttemplates__ = through(NVMM)
