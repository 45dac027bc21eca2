"""How a model's engine runs: on arrays of the host, or scaled and read on its GPU."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from msgspec import field

from headrace._core.errors import DeviceMemoryError, EngineError, GeometryError
from headrace._core.plain_record import PlainRecord
from headrace._core.types import Array
from headrace.infer.geometry import ScaleTransform
from headrace.infer.input_room import InputRoom
from headrace.infer.items import FramePiece, Items, split_pieces
from headrace.infer.parsers.device_tables import DeviceTables
from headrace.infer.record import Record
from headrace.meta.detections import FloatArray, IntArray

if TYPE_CHECKING:
    from concurrent.futures import Future

    from headrace.config import ModelConfig
    from headrace.engine.device import Device
    from headrace.engine.session import Session
    from headrace.infer.gpu.hits import HitFinder
    from headrace.infer.gpu.run_size import RunSize
    from headrace.infer.gpu.scaler import GpuScaler
    from headrace.infer.preprocess import Preprocessor
    from headrace.meta import NetworkInfo

Arrays = dict[str, Array]
Infer = Callable[[], tuple[Arrays, "float | None"]]


class Run(PlainRecord):
    """One run of the engine on items.

    Attributes:
        given: tensors of the caller; None scales the items.
        first: replaces the scaled input of the first item.
        future: its end, and that of the runs that one thread makes with it.
        outputs: None before the end, and of a batch that was lost.
        inputs: what the engine got, where somebody wants to see it.
        watched: the plausibility watch looks at it.
        seconds: how long the engine took.
    """

    items: Items
    given: Arrays | None = None
    first: FloatArray | None = None
    future: Future[None] = cast("Future[None]", None)  # set as it is submitted
    outputs: Arrays | None = None
    inputs: Arrays = field(default_factory=dict)
    watched: bool = False
    seconds: float = 0.0


class RunModel(Protocol):
    """The parts of a model that a runner reads."""

    config: ModelConfig
    session: Session
    network: NetworkInfo
    preprocessor: Preprocessor | None
    device: Device

    @property
    def input_name(self) -> str:
        """Name of the picture input."""

    def feeds(self, tensor: Any) -> dict[str, Any]:
        """Return the inputs of one run."""


class ParsesAhead(Protocol):
    """A postprocessor that parses before results are attached."""

    def parse_ahead(self, outputs: Arrays, items: Items) -> None:
        """Parse a run in the engine's thread."""


class RunLimit(PlainRecord):
    """How many items fit the GPU's memory.

    Attributes:
        most: items; None until it was full.
    """

    most: int | None = None


class RunOrder(PlainRecord, frozen=True):
    """Inputs of a run, and their readers.

    Attributes:
        inputs: tensors of the caller; None scales the items.
        first: replaces the scaled input of the first item.
        shows_inputs: files, a callback or a record of steps read the inputs.
        sees_inputs: these or the watch do.
        plain: neither files, nor a callback, nor steps read anything of the run.
        size: chooses the rows of a run on a GPU.
        limit: of the items that fit its memory.
    """

    inputs: Arrays | None
    first: FloatArray | None
    shows_inputs: bool
    sees_inputs: bool
    plain: bool
    size: RunSize
    limit: RunLimit


class HostRunner:
    """Scales on the host and runs the engine on its arrays.

    Args:
        model: whose engine runs.
        record: times and counts.
    """

    def __init__(self, model: RunModel, record: Record) -> None:
        self._model: RunModel = weakref.proxy(model)  # which holds this runner
        self._record = record
        self._room = InputRoom()

    def prepared(self, run: Run, order: RunOrder) -> Infer:
        """Get the inputs of a run ready.

        Returns:
            The inference: gives the outputs, and when the inputs were scaled, None for before.
        """
        feeds, again = self._inputs(run, order)

        def infer() -> tuple[Arrays, None]:
            outputs = self._model.session.run(feeds)
            if again is not None:
                self._room.give(*again)
            return outputs, None

        return infer

    def parsed(self, outputs: Arrays, items: Items) -> Arrays:
        """Parse in the engine's thread where that is quicker; returns the outputs."""
        return outputs

    def _inputs(
        self, run: Run, order: RunOrder
    ) -> tuple[Arrays, tuple[FloatArray, list[IntArray]] | None]:
        """The engine's inputs on the host, kept in the run where a reader asked for them.

        Returns:
            The inputs, and the tensor that a later run may use again, with the places in it.
        """
        model = self._model
        if order.inputs is not None:
            if order.shows_inputs:
                run.inputs = order.inputs
            return order.inputs, None
        again = scale(run.items, model, self._record, self._room)
        tensor = again[0]
        if order.first is not None:
            tensor[0] = order.first
        if order.sees_inputs:
            run.inputs = {model.input_name: tensor}
        kept = order.sees_inputs or order.first is not None
        return model.feeds(tensor), None if kept else again


class GpuRunner(HostRunner):
    """Scales on the engine's GPU, and finds candidates there; goes in parts where it is full.

    Args:
        model: whose engine runs.
        record: times and counts.
        scaler: does the preprocessor's work.
        finder: finds the candidates, where the parser needs nothing else of the outputs.
        post: parses the outputs in the engine's thread; None: they are parsed later.
    """

    def __init__(
        self,
        model: RunModel,
        record: Record,
        scaler: GpuScaler,
        finder: HitFinder | None,
        post: ParsesAhead | None,
    ) -> None:
        super().__init__(model, record)
        self._scaler, self.finder, self._post = scaler, finder, post

    def prepared(self, run: Run, order: RunOrder) -> Infer:
        """See `HostRunner.prepared`; tensors of the caller are on the host."""
        if order.inputs is not None or order.first is not None:
            return super().prepared(run, order)
        items = run.items
        pieces = pieces_of(items, self._model, self._record)
        alone = order.plain and not run.watched and all(items.valid())
        return lambda: self._infer(run, order, pieces, len(items), self.finder if alone else None)

    def parsed(self, outputs: dict[str, Any], items: Items) -> dict[str, Any]:
        """Parse in the engine's thread; on the host from now on if the GPU has no memory for it."""
        post = self._post
        if post is None:
            return outputs
        with self._model.device.entered():  # a parser of the user's may compute there
            try:
                post.parse_ahead(outputs, items)
            except DeviceMemoryError as error:
                self.finder = None
                self._warn(
                    f"the GPU has no memory for candidates ({error:brief}): "
                    "outputs are copied to the host from now on"
                )
                outputs = {name: table.numpy() for name, table in outputs.items()}
                post.parse_ahead(outputs, items)
        return outputs

    def _infer(
        self,
        run: Run,
        order: RunOrder,
        pieces: list[FramePiece],
        count: int,
        finder: HitFinder | None = None,
    ) -> tuple[Arrays, float]:
        """Scale and infer; in more goes where the GPU's memory does not do for one.

        Args:
            finder: leaves the outputs of a single go there, as `DeviceTables`.

        Returns:
            The outputs of all items, and when the last of them were scaled.

        Raises:
            EngineError: the GPU failed, or has no memory for a single item.
        """
        model = self._model
        fixed = model.session.fixed_batch
        most = fixed or order.limit.most
        if most is not None and count > most:
            return self._in_parts(run, order, pieces, most)
        rows = fixed or order.size.rows(count)
        rows = rows if most is None else min(rows, most)
        try:
            tensor = self._scaler(pieces, rows)
            t1 = perf_counter()
            outputs = model.session.run(model.feeds(tensor), to_host=finder is None)
        except DeviceMemoryError as error:
            if rows == 1 or fixed:
                raise
            order.limit.most = most = -(-rows // 2)
            self._warn(
                f"the GPU has no memory for {rows} items at once ({error:brief}): "
                "runs are smaller from now on"
            )
            return self._in_parts(run, order, pieces, most)
        if order.sees_inputs:
            seen = [tensor.numpy()[:count].astype(np.float32)]
            if run.inputs:  # of the parts before this one
                seen.insert(0, run.inputs[model.input_name])
            run.inputs = {model.input_name: np.concatenate(seen)}
        if finder is not None:
            tables: dict[str, Any] = {
                name: DeviceTables.of(t, finder).rows(count) for name, t in outputs.items()
            }
            return tables, t1
        return {name: array[:count] for name, array in outputs.items()}, t1

    def _in_parts(
        self, run: Run, order: RunOrder, pieces: list[FramePiece], most: int
    ) -> tuple[Arrays, float]:
        done: list[Arrays] = []
        t1 = perf_counter()
        for part, count in split_pieces(pieces, most):
            outputs, t1 = self._infer(run, order, part, count)
            done.append(outputs)
        return {name: np.concatenate([o[name] for o in done]) for name in done[0]}, t1

    def _warn(self, text: str) -> None:
        with self._record.lock:
            self._record.warn("gpu-memory", text, str(self._model.config.path))


def scale(
    items: Items, model: RunModel, record: Record, room: InputRoom
) -> tuple[FloatArray, list[IntArray]]:
    """The network input of N frames or crops; fills in where each lies in it.

    Returns:
        (N, ...) float32, zeros for an item without area; and the place of each piece.

    Raises:
        EngineError: there is no memory for it.
    """
    pre = model.preprocessor
    assert pre is not None
    pieces, count = pieces_of(items, model, record), len(items)
    places = [piece.dst for piece in pieces]
    try:
        array, filled = room.take((count, *pre.shape), places)
    except MemoryError as error:
        net = model.network
        raise EngineError(
            f"Failed to queue input batch for inferencing: there is no memory for {count} "
            f"input(s) of {net.width}x{net.height} pixels",
            where=str(model.config.path),
            fix="a smaller infer-dims or batch-size needs less",
        ) from error
    start = 0
    for piece in pieces:
        end = start + len(piece.src)
        if end > start:
            pre.write(piece.frame, piece.src, piece.dst, array[start:end], filled=filled)
        start = end
    return array, places


def pieces_of(items: Items, model: RunModel, record: Record) -> list[FramePiece]:
    """The pieces of frames that items show, in order; fills in where each lies."""
    pre = model.preprocessor
    assert pre is not None
    pieces: list[FramePiece] = []
    if items.rects is not None:
        for start, end in items.by_frame():
            frame = items.frames[start]
            crops = pre.fitted(items.rects[start:end], frame.width, frame.height)
            items.crops.append(crops)
            pieces.append(FramePiece(frame, crops.src, crops.dst))
        return pieces
    transforms: list[ScaleTransform | None] = []
    for frame in items.frames:
        try:
            placed = pre.place(frame)
        except GeometryError as error:
            record.warn("nothing-inferred", f"{error:brief}: nothing is inferred on such frames")
            pieces.append(FramePiece(frame, _NOTHING, _NOTHING))
            transforms.append(None)
        else:
            pieces.append(FramePiece(frame, placed.src, placed.dst, whole=True))
            transforms.append(placed.transform)
    items.transforms = transforms
    return pieces


_NOTHING = np.zeros((1, 4), np.int32)  # its item is zeros
