"""Running a plan: inputs checked and converted, batches cut and padded, outputs batch first."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headrace._core.errors import DeviceMemoryError, EngineError
from headrace._core.types import Array, DType
from headrace.engine.backends import PlacingRunner, Runner, RunnerOptions
from headrace.engine.backends.protocol import DLPackTensor, device_of
from headrace.engine.plan_header import PlanHeader
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace._core.findings import Finding
    from headrace.engine.backends.protocol import Outputs
    from headrace.engine.plugin_graph.context_pool import ContextPool


class OutputMemory(Protocol):
    """A pool of memory for outputs, for callers that want them in their own memory."""

    def take(self, dtype: DType, shape: tuple[int, ...]) -> Array | None:
        """A new C-contiguous array on the host, its values arbitrary; None: make it elsewhere.

        It is taken back when the array and all views of it are gone. Thread-safe.
        """
        ...


class Session:
    """A plan ready to run, over any backend. Made by `Plan.open_session`.

    Thread-safe: `run` may be called from several threads at once. Tensors need not be on the host:
    those on `device` are taken as they are, and outputs stay there with `to_host=False`. Both speak
    DLPack, so they pass between libraries uncopied.

    Attributes:
        inputs: bindings as the model declares them. Arrays of float32 are taken for every numeric
            type and converted (rounded to nearest, integers saturated). Source: spec A.5.
        outputs: bindings in order; shapes as far as they are known before a run.
        batched_inputs: names of the inputs whose first axis is the batch.
        max_batch: most items of one run.
        fixed_batch: items of one run of the runtime, if the model fixes them. Fewer are padded,
            more are run in several goes. Source: spec A.5, D.2.
        device: where tensors may live that are taken as they are: `cpu`, or `cuda:0`.
        options: threads and streams it was opened with.
        output_memory: where outputs on the host shall be written, if the runtime can write them
            there and their shapes are known before the run; may be set at any time.
    """

    def __init__(
        self,
        runner: Runner,
        header: PlanHeader,
        *,
        where: str,
        options: RunnerOptions | None = None,
    ) -> None:
        self.options = options or RunnerOptions()
        self.device = runner.device
        self.inputs: tuple[TensorSpec, ...] = tuple(record.spec for record in header.inputs)
        self.outputs: tuple[TensorSpec, ...] = runner.outputs
        self.max_batch = header.max_batch
        self.fixed_batch = header.fixed_batch
        self.output_memory: OutputMemory | None = None
        self._placing = runner if isinstance(runner, PlacingRunner) else None
        self._where = where
        self._runner: Runner | None = runner
        self._by_name = {spec.name: spec for spec in self.inputs}
        self.batched_inputs = frozenset(
            spec.name
            for i, spec in enumerate(self.inputs)
            if i == 0 or (spec.shape and spec.shape[0] in (None, self.fixed_batch))
        )
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    @property
    def runner(self) -> Runner:
        """The runtime itself; it takes arrays of exact types and shapes only.

        Raises:
            EngineError: the session is closed.
        """
        return self._open_runner()

    @property
    def contexts(self) -> ContextPool | None:
        """The execution contexts of its plugins; None without plugins."""
        pool: ContextPool | None = getattr(self._runner, "contexts", None)
        return pool

    @property
    def notices(self) -> list[Finding]:
        """Notices of its runs so far."""
        return [] if self.contexts is None else list(self.contexts.notices)

    def run(self, inputs: Mapping[str, DLPackTensor], *, to_host: bool = True) -> dict[str, Any]:
        """Run one batch of 1 to `max_batch` items.

        Args:
            inputs: one array per input, (items, …), of the declared type or float32; an input
                beside the first whose axes are all fixed is the same for every batch size. A
                tensor that lives on `device` (anything that speaks DLPack) is taken without a
                copy; it must have the declared type, be C-contiguous, and make a whole run.
            to_host: give arrays. Otherwise outputs are tensors on `device`, which speak DLPack;
                they are arrays too where that is the CPU.

        Returns:
            One new array per output in binding order, (items, …); an output whose only axis is
            the batch is (items, 1), or (items,) where it stays on a device. A model that fixes
            its batch at 1 may put other axes first: all of them are the item's.

        Raises:
            EngineError: an input is missing, unknown, or of the wrong shape or type; an output is
                not batch first; the runtime failed; the session is closed.
        """
        runner = self._open_runner()
        feeds, items = self._checked(inputs)
        size = self.fixed_batch
        if size is None or size == items:
            return self._named(self._run(runner, feeds, to_host), items, items)
        if not to_host or not all(isinstance(a, np.ndarray) for a in feeds.values()):
            raise EngineError(
                f"a batch of {items} on {self.device}; the model fixes its batch at {size}",
                where=self._where,
                expected=f"{size} items: only arrays on the host are cut and padded",
            )
        parts = []
        for start in range(0, items, size):
            real = min(size, items - start)
            chunk = {
                name: _padded(a[start : start + real], size) if name in self.batched_inputs else a
                for name, a in feeds.items()
            }
            parts.append(self._named(self._run(runner, chunk), size, real))
        if len(parts) == 1:
            return parts[0]
        return {name: _joined([part[name] for part in parts]) for name in parts[0]}

    def _open_runner(self) -> Runner:
        if self._runner is None:
            raise EngineError("the session is closed", where=self._where)
        return self._runner

    def _run(
        self, runner: Runner, feeds: Mapping[str, DLPackTensor], to_host: bool = True
    ) -> Sequence[Array]:
        try:
            if to_host and self._placing is not None and self.output_memory is not None:
                return self._run_into(self._placing, feeds, self.output_memory)
            return runner.run(feeds, to_host=to_host)
        except EngineError as error:
            if error.where:
                raise
            kind = DeviceMemoryError if isinstance(error, DeviceMemoryError) else EngineError
            raise kind(error.finding, where=self._where, code=kind.code) from error

    def _run_into(
        self, runner: PlacingRunner, feeds: Mapping[str, Any], memory: OutputMemory
    ) -> Sequence[Array]:
        """Run with outputs in `memory`, as far as their shapes are known and it has room."""
        items = len(feeds[self.inputs[0].name])
        targets = {}
        for spec in self.outputs:
            shape = tuple(items if i == 0 and not isinstance(d, int) else d
                          for i, d in enumerate(spec.shape))  # fmt: skip
            known = tuple(d for d in shape if isinstance(d, int))
            if known and known == shape and (target := memory.take(spec.dtype, known)) is not None:
                targets[spec.name] = target
        if not targets or not all(isinstance(a, np.ndarray) for a in feeds.values()):
            return runner.run(feeds)
        try:
            return runner.run_into(feeds, targets)
        except EngineError:
            outputs = runner.run(feeds)  # raises, too, if that was not the reason
            self.output_memory = None
            return outputs

    def submit(
        self, inputs: Mapping[str, DLPackTensor], *, to_host: bool = True
    ) -> Future[dict[str, Any]]:
        """`run` in a thread of the session, one after the other in the order of submission.

        The arrays must stay unchanged until the future is done.

        Raises:
            EngineError: the session is closed. All else is raised by the future.
        """
        with self._lock:
            if self._runner is None:
                raise EngineError("the session is closed", where=self._where)
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix="headrace-engine")
            return self._executor.submit(self.run, inputs, to_host=to_host)

    def close(self) -> None:
        """Release the runtime's memory; runs under way finish, queued ones are cancelled."""
        with self._lock:
            runner, self._runner, self._placing = self._runner, None, None
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)
        if runner is not None:
            runner.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self._where}: {', '.join(map(str, self.inputs))})"

    def _check_names(self, inputs: Mapping[str, DLPackTensor]) -> None:
        if inputs.keys() != self._by_name.keys():
            missing = [n for n in self._by_name if n not in inputs]
            extra = [n for n in inputs if n not in self._by_name]
            problems = [f"missing input {', '.join(map(repr, missing))}"] if missing else []
            problems += [f"no input is called {', '.join(map(repr, extra))}"] if extra else []
            raise EngineError(
                "; ".join(problems), where=self._where, expected=", ".join(map(str, self.inputs))
            )

    def _checked(self, inputs: Mapping[str, DLPackTensor]) -> tuple[dict[str, Any], int]:
        self._check_names(inputs)
        feeds = {}
        items = -1
        for name, spec in self._by_name.items():
            array: Any = inputs[name]
            if not isinstance(array, np.ndarray):
                array = self._placed(name, array)
            batched = name in self.batched_inputs
            shape = tuple(array.shape)
            fits = len(shape) == len(spec.shape) and all(
                not isinstance(want, int) or want == have
                for want, have in zip(spec.shape[batched:], shape[batched:], strict=True)
            )
            if not fits or (batched and items >= 0 and shape[0] != items):
                self._refuse_shape(spec, array, items if batched else None)
            items = shape[0] if batched else items
            on_host = isinstance(array, np.ndarray)
            feeds[name] = _converted(array, spec, self._where) if on_host else array
        if not 1 <= items <= self.max_batch:
            raise EngineError(
                f"a batch of {items}",
                where=self._where,
                expected=f"1 to {self.max_batch} items",
                fix=f"build with batch-size={items}" if items else (),
            )
        return feeds, items

    def _placed(self, name: str, tensor: Any) -> Any:
        """`tensor` as it is, if it lives on the session's device; as an array if on the host."""
        device = device_of(tensor)
        if device == "cpu":
            dlpack_only = hasattr(tensor, "__dlpack__") and not hasattr(tensor, "__array__")
            return np.from_dlpack(tensor) if dlpack_only else np.asarray(tensor)
        if device != self.device:
            raise EngineError(
                f"input {name!r} is on {device}",
                where=self._where,
                expected=f"on {self.device}" + ("" if self.device == "cpu" else ", or the host"),
                fix="copy it to the host first" if self.device == "cpu" else (),
            )
        return tensor

    def _refuse_shape(self, spec: TensorSpec, array: DLPackTensor, items: int | None) -> None:
        axes = ["?" if d is None else str(d) for d in spec.shape]
        if items is not None:
            axes[:1] = [str(items) if items >= 0 else f"1..{self.max_batch}"]
        want = "x".join(axes) or "scalar"
        raise EngineError(
            f"input {spec.name!r} has shape {'x'.join(map(str, array.shape)) or 'scalar'}",
            where=self._where,
            expected=want,
        )

    def _named(self, arrays: Outputs, size: int, real: int) -> dict[str, Any]:
        named = {}
        for spec, array in zip(self.outputs, arrays, strict=True):
            if not array.shape and size == 1:
                array = array.reshape(1, 1)  # one number for the one item
            elif self.fixed_batch == 1 and array.shape and array.shape[0] != 1:
                array = array.reshape(1, *array.shape)  # steps or rows of the only item
            elif not array.shape or array.shape[0] != size:
                raise EngineError(
                    f"output {spec.name!r} has shape {'x'.join(map(str, array.shape)) or 'scalar'}"
                    f" for a batch of {size}: its first axis is not the batch",
                    where=self._where,
                    fix=_batch_first(spec.name, array.shape, size),
                )
            if isinstance(array, np.ndarray):
                array = array[:real]
                array = array.reshape(real, 1) if array.ndim == 1 else array
            named[spec.name] = array
        return named


def _joined(parts: Sequence[Array]) -> Array:
    """Join the outputs of several runs; of rows that each run counts, missing ones are zeros."""
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) > 1:
        largest = np.max(list(shapes), axis=0)
        parts = [np.pad(p, [(0, 0), *((0, n) for n in largest - p.shape[1:])]) for p in parts]
    return np.concatenate(parts)


def _batch_first(name: str, shape: tuple[int, ...], size: int) -> list[str]:
    """List the reasons that the batch is an output's first axis."""
    hints = [
        "export the model with batch-first outputs; "
        "NMS inside the model must keep a fixed number of boxes per item"
    ]
    if size == 1:
        hints.append(
            "or, in a network made by code, put the batch first by a shuffle before markOutput: "
            f"{name!r} with the dimensions ({', '.join(map(str, (1, *shape)))})"
        )
    return hints


class FreeSession(Session):
    """`Session` for plans built with `batched=False`: networks made by code, parts of models.

    Nothing is padded, split, converted or reshaped; scalars stay scalars.
    """

    def run(self, inputs: Mapping[str, DLPackTensor], *, to_host: bool = True) -> dict[str, Any]:
        """Run once.

        Args:
            inputs: one array per input, of the declared type and rank; where the model says a size
                it must be that, and free axes with one name must be equal.
            to_host: see `Session.run`.

        Returns:
            One new array per output in binding order.

        Raises:
            EngineError: an input is missing, unknown, or of the wrong shape or type; the runtime
                failed; the session is closed.
        """
        runner = self._open_runner()
        self._check_names(inputs)
        feeds = {}
        named: dict[str, int] = {}
        for name, spec in self._by_name.items():
            tensor = inputs[name]
            if not isinstance(tensor, np.ndarray):
                tensor = self._placed(name, tensor)
            self._check(spec, tensor, named)
            on_host = isinstance(tensor, np.ndarray)
            feeds[name] = np.asarray(tensor, order="C") if on_host else tensor
        outputs = self._run(runner, feeds, to_host)
        return {spec.name: array for spec, array in zip(self.outputs, outputs, strict=True)}

    def _check(self, spec: TensorSpec, tensor: DLPackTensor, named: dict[str, int]) -> None:
        shape = tuple(tensor.shape)
        fits = len(shape) == len(spec.shape)
        for want, have in zip(spec.shape, shape, strict=False):
            if isinstance(want, str) and want:
                want = named.setdefault(want, have)
            fits = fits and want in (None, "", have)
        if not fits:
            shape_text = "x".join(map(str, shape)) or "scalar"
            raise EngineError(
                f"input {spec.name!r} has shape {shape_text}", where=self._where, expected=str(spec)
            )
        dtype = getattr(tensor, "dtype", None)
        if isinstance(tensor, np.ndarray) and dtype != spec.dtype:
            raise EngineError(
                f"input {spec.name!r} is {dtype}", where=self._where, expected=spec.dtype.name
            )


def _padded(array: Array, size: int) -> Array:
    if len(array) == size:
        return array
    blank = "" if array.dtype.kind == "O" else 0
    padded = np.full((size, *array.shape[1:]), blank, array.dtype)
    padded[: len(array)] = array
    return padded


def _converted(array: Array, spec: TensorSpec, where: str) -> Array:
    """`array` as the declared type: float32 is converted, anything else refused. Spec A.5."""
    if array.dtype == spec.dtype:
        return np.ascontiguousarray(array)
    if spec.dtype.kind == "O" and array.dtype.kind in "UT":
        return array.astype(object)
    if array.dtype != np.float32 or spec.dtype.kind in "bO":
        also = "" if spec.dtype.kind in "bO" else " (float32 is converted)"
        raise EngineError(
            f"input {spec.name!r} is {array.dtype.name}",
            where=where,
            expected=f"{spec.dtype.name}{also}",
        )
    if spec.dtype.kind == "f":
        with np.errstate(over="ignore"):  # beyond half precision is infinite, as IEEE says
            return np.ascontiguousarray(array, dtype=spec.dtype)
    limits = np.iinfo(spec.dtype)
    rounded = np.rint(array, dtype=np.float32 if limits.bits <= 16 else np.float64)
    np.nan_to_num(rounded, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)
    if limits.bits == 64:
        # 2**63 - 1 is no float64: cut at the nearest one below, which is exact enough for pixels
        top = float(np.nextafter(float(limits.max), 0.0))
        rounded = np.clip(rounded, float(limits.min), top, out=rounded)
    else:
        rounded = np.clip(rounded, float(limits.min), float(limits.max), out=rounded)
    return rounded.astype(spec.dtype)
