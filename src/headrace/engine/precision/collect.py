"""Histograms of a network's activations, collected over images.

ONNX Runtime's own calibrator cannot continue a saved state, and its result depends on the order of
the images.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx

from headrace._core.errors import EngineError
from headrace._core.files import os_errors, sha256_of, write_atomically
from headrace._core.types import Array
from headrace.engine.backends import DEFAULT_BACKEND, RunnerOptions, get_backend
from headrace.engine.plugin_graph.plugin_layers import build_plugins
from headrace.engine.precision.explicit import activation_names
from headrace.engine.precision.histogram import BINS, Histogram, Method, clip_at
from headrace.engine.precision.prepare import Proto, prepare
from headrace.network.network import Network
from headrace.network.tensor_spec import TensorSpec
from headrace.plugins.nodes import has_plugins

_STATE_VERSION = 1
_MAX_STATE_BYTES = 2**31
MOST_IMAGES = 8
"""Images of one run."""


class ActivationRunner:
    """A network with its float activations as further outputs.

    `names` are in the order of the graph, inputs first; `batch` is None unless the model fixes it.
    """

    def __init__(
        self,
        network: Network,
        *,
        names: Iterable[str] | None = None,
        shape: Sequence[int | None] | None = None,
        threads: int | None = None,
    ) -> None:
        """Open it.

        By default all activations are put out. `shape` is that of the image, which plugins need to
        know; by default the model's own.

        Raises:
            EngineError: the runtime refuses the model, or the model has further inputs.
            PluginError: a plugin of it failed.
        """
        where = str(network.path) if network.path else None
        if len(network.inputs) > 1:
            extra = ", ".join(spec.name for spec in network.inputs[1:])
            raise EngineError(
                f"the model has inputs beside the image ({extra})",
                where=where,
                expected="one input: only such models are calibrated",
                fix="make these inputs constants (initialisers) of the model",
            )
        image = network.inputs[0]
        axes = tuple(shape or image.shape)
        self.batch = axes[0] if axes and isinstance(axes[0], int) else None
        self.input_name = image.name
        proto = prepare(network.to_proto(), where=where)
        layers = None
        if has_plugins(network):
            spec = TensorSpec(image.name, image.dtype, axes)
            layers = build_plugins(
                network, proto.SerializeToString(), [spec], max_batch=self.batch or MOST_IMAGES,
                batched=True, where=where or "network",
            )  # fmt: skip
        if layers is not None:
            proto = onnx.ModelProto.FromString(layers.model)  # with the types of plugin outputs
        self.names = activation_names(proto) if names is None else list(names)
        _put_out(proto, self.names)
        backend = get_backend(DEFAULT_BACKEND)
        message = proto.SerializeToString()
        if layers is None:
            self._runner = backend.open(message, RunnerOptions(threads))
        else:
            layers.model = message
            try:
                self._runner = layers.open(backend, RunnerOptions(threads, batched=False))
            except BaseException:
                layers.close()
                raise
        self._outputs = [spec.name for spec in self._runner.outputs]

    def run(self, images: npt.NDArray[np.float32]) -> dict[str, Array]:
        """Compute the activations of a batch by name.

        Raises:
            EngineError: the runtime failed.
        """
        feeds = {self.input_name: images}
        activations = dict(zip(self._outputs, self._runner.run(feeds), strict=True)) | feeds
        return {name: activations[name] for name in self.names}

    def close(self) -> None:
        """Release the runtime's memory."""
        self._runner.close()


def _put_out(proto: Proto, names: Iterable[str]) -> None:
    from onnx import TensorProto, helper

    graph = proto.graph
    there = {value.name for value in (*graph.input, *graph.output)}
    for name in names:
        if name not in there:
            graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))


class Collector:
    """Histograms of a network's activations, saved and continued.

    Attributes:
        histograms: activation -> its values so far.
        frames: number of images so far.
        whole: False while a batch is counted in part, also after an interruption.
    """

    def __init__(self, runner: ActivationRunner, fingerprint: str) -> None:
        """Start without images.

        `fingerprint` is of everything that decides the histograms: a saved state of another one is
        not continued.
        """
        self.runner = runner
        self.histograms = {name: Histogram() for name in runner.names}
        self.frames = 0
        self.whole = True
        text = json.dumps([_STATE_VERSION, BINS, fingerprint, runner.names])
        self._key = sha256_of(text.encode("utf-8", "surrogatepass"))

    def add(self, images: npt.NDArray[np.float32], count: int | None = None) -> None:
        """Count one batch, (n, …); `count` of them are new images, all by default.

        Raises:
            EngineError: the runtime failed; nothing of the batch is counted then.
        """
        activations = self.runner.run(images)
        self.whole = False
        for name, values in activations.items():
            self.histograms[name].add(values)
        self.frames += len(images) if count is None else count
        self.whole = True

    def scales(self, method: Method, percentile: float = 99.99) -> dict[str, float]:
        """Work out the scale of each activation; 0 where all values were 0."""
        return {
            name: clip_at(histogram, method, percentile) / 127
            for name, histogram in self.histograms.items()
        }

    def save(self, path: Path) -> None:
        """Save the state, whole or not at all.

        Raises:
            EngineError: it cannot be written.
        """
        seen = list(self.histograms.values())
        archive = io.BytesIO()
        np.savez_compressed(
            archive,
            key=np.array(self._key),
            frames=np.array(self.frames),
            counts=np.stack([h.counts for h in seen]),
            tops=np.array([[h.top, h.largest] for h in seen], np.float64),
            rest=np.array([[h.zeros, h.odd] for h in seen], np.int64),
        )
        with os_errors(EngineError, "the state of the calibration cannot be written", path):
            write_atomically(path, [archive.getbuffer()])

    def load(self, path: Path) -> str | None:
        """Continue a saved state; return the reason if that fails."""
        try:
            if path.stat().st_size > _MAX_STATE_BYTES:
                return "it is too large"
            with np.load(path, allow_pickle=False) as state:
                return self._restore({name: state[name] for name in _PARTS})
        except KeyError as error:
            return f"it has no {error}"
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
            return f"it cannot be read ({str(error) or type(error).__name__})"

    def _restore(self, state: Mapping[str, Array]) -> str | None:
        count = len(self.histograms)
        shapes = {"key": (), "frames": (), "counts": (count, BINS), "tops": (count, 2)}
        if str(state["key"]) != self._key:
            return "it is of another model, config, source or version"
        for name, shape in (shapes | {"rest": (count, 2)}).items():
            if state[name].shape != shape:
                return f"its {name} have the shape {state[name].shape}"
        counts, rest, frames = (state[n].astype(np.int64) for n in ("counts", "rest", "frames"))
        tops = state["tops"].astype(np.float64)
        if min(counts.min(initial=0), rest.min(initial=0), int(frames)) < 0:
            return "it counts below 0"
        if not (np.isfinite(tops).all() and (tops >= 0).all()):
            return "its ranges are no numbers"
        for i, histogram in enumerate(self.histograms.values()):
            histogram.counts = counts[i]
            histogram.top, histogram.largest = map(float, tops[i])
            histogram.zeros, histogram.odd = map(int, rest[i])
        self.frames = int(frames)
        return None


_PARTS = ("key", "frames", "counts", "tops", "rest")
