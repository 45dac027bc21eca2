"""A plugin layer in an execution context: arrays in, pointers to the plugin, arrays out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core._native import LentMemory, address_of, give_back, lend
from headrace._core.errors import PluginError
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.plugins.base import IPluginV2DynamicExt, IPluginV2Ext
from headrace.plugins.calls import Instance
from headrace.plugins.device import stage_for
from headrace.plugins.expressions import Shaped, evaluate
from headrace.plugins.layer import EngineSpec, Shape, refuse
from headrace.plugins.memory import array_at, fenced, written_outside
from headrace.plugins.prepared import Prepared, descs, sizes_of, with_unknown
from headrace.plugins.types import DataType
from headrace.plugins.watch import checksums, every_run, fill, unwritten

if TYPE_CHECKING:
    from typing import Any


class ContextPlugin(ABC):
    """A plugin layer in an execution context. Not for two threads at a time.

    Attributes:
        report: called with notices of a run.
        notices: a list for those who collect them there.
    """

    def __init__(self, spec: EngineSpec, instances: Sequence[Instance]) -> None:
        self.spec = spec
        self.instances = list(instances)
        self._prepared: Prepared | None = None
        self._workspace: Array = np.empty(0, np.uint8)
        self._workspace_bytes = max(spec.workspaces, default=0)
        self._closed = False
        self._stage = stage_for(self.instances)
        self._named = f"enqueue of {spec.where}", instances[0].library if instances else ""
        self.report: Callable[[Finding], None] = lambda notice: None
        self.notices: list[Finding] = []

    def run(
        self,
        inputs: Sequence[Array],
        *,
        shape_inputs: Sequence[Array] = (),
        fresh: Sequence[bool] | None = None,
        into: Callable[[int, Shape], Array | None] | None = None,
    ) -> list[Array]:
        """Compute.

        Args:
            inputs: as the network has them; cast to what was negotiated where they differ.
            shape_inputs: integers, on the host (version 3).
            fresh: per output, whether it must have memory of its own; that of the others is used
                again by the next run. None: all of their own.
            into: memory where output number n is wanted in this shape, of the network's type; None
                for an output left out. Asked once per output, before or after the plugin has run.

        Returns:
            The outputs, as the network has them.

        Raises:
            PluginError: the plugin failed, or was not built for these shapes.
        """
        spec = self.spec
        now, arrays = self.prepared(inputs, shape_inputs)
        outputs: list[Array] = []
        placed: set[int] = set()
        for index, form in enumerate(spec.output_forms):
            alias = spec.aliases[index] if spec.aliases else -1
            own = fresh is None or fresh[index]
            if alias >= 0:  # the input may have other readers: a copy is worked on
                arrays[alias] = np.array(arrays[alias], copy=True)
                outputs.append(arrays[alias].reshape(now.packed[index]))
                continue
            same_type = form.is_linear and form.storage == spec.dtypes[index]
            shape = now.shaped.shapes[index]
            keeps = not (own and same_type) or into is not None
            buffer = None
            if into is not None and same_type and not now.shaped.data_dependent:
                buffer = into(index, shape)
                placed.add(index)
            if buffer is None:
                buffer = self._kept(now, index) if keeps else fenced(shape, form.storage)
            outputs.append(buffer)
        read_only = [
            (address_of(a), a.nbytes) for i, a in enumerate(arrays) if i not in spec.aliases
        ]
        watched = self._watches(now)
        before = checksums(read_only) if watched else []
        if watched:
            self._fill(outputs)
        self._call(
            now,
            [address_of(a) for a in arrays],
            [address_of(a) for a in outputs],
            [*(a.nbytes for a in outputs), *(a.nbytes for a in arrays)],
        )
        self._check_fences(outputs)
        if watched:
            self._check_inputs(before, checksums(read_only))
        outputs = [
            form.unpack(out, shape)
            for form, out, shape in zip(spec.output_forms, outputs, now.shaped.shapes, strict=True)
        ]
        if now.shaped.data_dependent:
            outputs = self.cut(now.shaped, outputs)
        if watched:
            self._check_written(outputs)
            now.proven = now.proven or not every_run()
        outputs = [
            out if index in placed else form.restored(out, dtype)
            for index, (form, out, dtype) in enumerate(
                zip(spec.output_forms, outputs, spec.dtypes, strict=True)
            )
        ]
        if into is not None:
            for index, out in enumerate(outputs):
                target = into(index, out.shape) if index not in placed else None
                if target is not None:
                    np.copyto(target, out, casting="unsafe")
        return outputs

    def run_at(
        self, inputs: Sequence[tuple[int, Shape]], address_for: Callable[[int, Shape], int | None]
    ) -> None:
        """Compute in memory of the caller.

        For plugins with `EngineSpec.is_plain`, and inputs in the plugin's own types. `inputs` are
        address and shape of each, dense and row-major; `address_for` gives the address for output
        number n in this shape, None if it is left out.

        Raises:
            PluginError: the plugin failed, or was not built for these shapes.
        """
        now = self._prepared
        if now is None or now.taken != inputs:
            key = (tuple([shape for _, shape in inputs]), ())
            if now is None or now.key != key:
                now = self._prepare(key)
            now.taken, now.taken_at = list(inputs), [at for at, _ in inputs]
            now.lent = None
        outputs: Any = []
        for index, shape in now.asked:  # a comprehension takes twice as long
            outputs.append(address_for(index, shape))
        lent = now.lent
        if lent is None or lent[0] != outputs:
            if not now.proven or None in outputs or self._stage is not None:
                self._run_apart(now, outputs)
                return
            lent = now.lent = outputs[:], *self._lend(now, now.taken_at, outputs, now.sizes)
        lend(lent[1])
        try:
            self._enqueue(now, now.taken_at[:], outputs, lent[2])
        finally:
            give_back()

    def _run_apart(self, now: Prepared, asked: Sequence[int | None]) -> None:
        """Compute a run that is not proven, leaves outputs out, or works on a GPU.

        The first run of a shape writes to memory with fences, which the caller's has not.
        """
        kept = [
            self._kept(now, i) if at is None or not now.proven else None
            for i, at in enumerate(asked)
        ]
        into = [
            address_of(own) if own is not None else at or 0
            for at, own in zip(asked, kept, strict=True)
        ]
        read_only = list(zip(now.taken_at, now.reads, strict=True))
        watched = self._watches(now)
        before = checksums(read_only) if watched else []
        if watched:
            self._fill(kept)
        self._call(now, now.taken_at[:], into, now.sizes)
        if now.proven:
            return
        self._check_fences([own for own in kept if own is not None])
        if watched:
            self._check_inputs(before, checksums(read_only))
            self._check_written(kept)
        for at, own in zip(asked, kept, strict=True):
            if at is not None and own is not None and own.nbytes:
                array_at(at, own.shape, own.dtype, writable=True)[...] = own
        now.proven = not every_run()

    def prepared(
        self, inputs: Sequence[Array], shape_inputs: Sequence[Array] = ()
    ) -> tuple[Prepared, list[Array]]:
        """Begin a run: tell the plugin the shapes, and convert the inputs.

        Raises:
            PluginError: as `run`.
        """
        values = tuple(tuple(int(v) for v in a.reshape(-1)) for a in shape_inputs)
        key = (tuple(a.shape for a in inputs), values)
        now = self._prepared
        if now is None or now.key != key:
            now = self._prepare(key)
        arrays = self._alike(now, [self._cast(i, a) for i, a in enumerate(inputs)])
        forms = self.spec.input_forms
        return now, [form.pack(a) for form, a in zip(forms, arrays, strict=True)]

    def enqueue_at(
        self, now: Prepared, inputs: list[int], outputs: list[int], workspace: int
    ) -> None:
        """Let the plugin compute at addresses of the caller's, without a check around it.

        Raises:
            PluginError: the plugin failed.
        """
        self._enqueue(now, inputs, outputs, workspace)

    @property
    def workspace_bytes(self) -> int:
        """Bytes of scratch memory that the plugin asked for."""
        return self._workspace_bytes

    @property
    def on_device(self) -> bool:
        """True if the plugin takes addresses of the GPU's memory."""
        return self._stage is not None

    def close(self) -> None:
        """The context is gone."""
        if not self._closed:
            self._closed = True
            self._free()
            self._stage = None

    @property
    def stream(self) -> int:
        """The stream for `enqueue`; 0 where it works on the host."""
        return 0 if self._stage is None else self._stage.stream

    def _prepare(self, key: tuple[Any, ...]) -> Prepared:
        spec = self.spec
        shapes, values = key
        ranks = [len(s) for s in spec.profiles[0].opt]
        if [len(s) for s in shapes] != ranks:
            raise refuse(spec, f"inputs {shapes}", expected=f"inputs of {ranks} axes")
        shaped = evaluate(spec.shapes, shapes, values, where=spec.where)
        fits = [i for i, p in enumerate(spec.profiles) if p.hold(shapes)]
        self._prepared = None  # a failure leaves the plugin in an unknown state: prepare again
        now = Prepared(
            key=key,
            profile=fits[0] if fits else len(spec.profiles) - 1,
            shaped=shaped,
            inputs=descs(shapes, spec.input_forms),
            outputs=descs(with_unknown(shaped), spec.output_forms),
            reads=sizes_of(shapes, spec.input_forms),
            writes=sizes_of(shaped.shapes, spec.output_forms),
            packed=[
                form.packed_shape(shape)
                for form, shape in zip(spec.output_forms, shaped.shapes, strict=True)
            ],
            names=[f"output {i}" for i in range(len(spec.output_types))]
            + [f"input {i}" for i in range(len(shapes))],
        )
        self._change(now, within=bool(fits))
        self._prepared = now
        return now

    def _kept(self, now: Prepared, index: int) -> Array:
        """Memory of an output that the next run uses again."""
        buffer = now.buffers.get(index)
        if buffer is None:
            kind = self.spec.output_forms[index].storage
            buffer = now.buffers[index] = fenced(now.packed[index], kind)
        return buffer

    def _cast(self, index: int, array: Array) -> Array:
        """Convert an input to the type that the plugin takes; report values beyond its range."""
        form = self.spec.input_forms[index]
        if array.dtype == form.storage:
            return np.ascontiguousarray(array)
        beyond: list[str] = []
        with np.errstate(
            call=lambda fault, flag: beyond.append(fault), over="call", invalid="call"
        ):
            cast = form.converted(array)
        if beyond or (array.dtype.kind in "iu" and _exceeds(array, form.storage)):
            self._tell_overflow(index, form.type)
        return cast

    def _tell_overflow(self, index: int, kind: DataType) -> None:
        most = "3.39e38" if kind == DataType.BF16 else f"{_limits(kind.numpy).max:g}"
        text = (
            f"layer {self.spec.layer!r}: input {index} has values beyond {kind.name}, which ends "
            f"at {most}: plugin {self.spec.name} takes {kind.name} alone"
        )
        text += ", and gets infinity" if kind.is_float else ", and gets other numbers"
        data = {"layer": self.spec.layer, "input": index}
        self.report(Finding("plugin-overflow", "warning", text, data=data))

    def _alike(self, now: Prepared, inputs: list[Array]) -> list[Array]:
        """Inputs as the plugin expects them."""
        return inputs

    def _call(self, now: Prepared, inputs: list[int], outputs: list[int], sizes: list[int]) -> None:
        """Host addresses; bytes of outputs, then of inputs."""
        if self._stage is not None:
            with self._stage.lend(inputs, outputs, sizes, self._workspace_bytes) as there:
                self._enqueue(now, *there)
            return
        memory, workspace = self._lend(now, inputs, outputs, sizes)
        with memory:
            self._enqueue(now, inputs, outputs, workspace)

    def _lend(
        self, now: Prepared, inputs: list[int], outputs: list[int], sizes: list[int]
    ) -> tuple[LentMemory, int]:
        """Name the memory of outputs, inputs and workspace; the workspace's address."""
        blocks = [
            (at, at + size, i < len(outputs), name)
            for i, (at, size, name) in enumerate(
                zip([*outputs, *inputs], sizes, now.names, strict=True)
            )
        ]
        if not self._workspace_bytes:
            return LentMemory(blocks, *self._named), 0
        if self._workspace.nbytes < self._workspace_bytes:
            self._workspace = self._scratch()
        workspace = address_of(self._workspace)
        blocks.append((workspace, workspace + self._workspace.nbytes, True, "the workspace"))
        return LentMemory(blocks, *self._named), workspace

    def _check_fences(self, outputs: Sequence[Array]) -> None:
        """Refuse a run that wrote around an output, or around the workspace."""
        for index, array in enumerate(outputs):
            if place := written_outside(array):
                raise refuse(
                    self.spec,
                    f"enqueue wrote {place} output {index}",
                    expected=f"{array.nbytes} bytes, {array.dtype.name} {array.shape}",
                    method="enqueue",
                    clause="outputs-bounds",
                )
        if place := written_outside(self._workspace):
            raise refuse(
                self.spec,
                f"enqueue wrote {place} the workspace",
                expected=f"{self._workspace.nbytes} bytes, as get_workspace_size returned",
                method="enqueue",
                clause="workspace-bounds",
            )

    def _watches(self, now: Prepared) -> bool:
        """Whether a run is watched; not where copies of a GPU's memory are all that is seen."""
        return self._stage is None and (every_run() or not now.proven)

    def _fill(self, outputs: Sequence[Array | None]) -> None:
        """Fill outputs that have memory of their own."""
        for index, (array, form) in enumerate(zip(outputs, self.spec.output_forms, strict=True)):
            if array is not None and (not self.spec.aliases or self.spec.aliases[index] < 0):
                fill(array, form.type)

    def _check_inputs(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Refuse a run that wrote into an input."""
        read_only = [i for i in range(len(self.spec.input_forms)) if i not in self.spec.aliases]
        for index, one, two in zip(read_only, before, after, strict=True):
            if one != two:
                raise refuse(
                    self.spec,
                    f"enqueue wrote into input {index}",
                    expected="inputs that stay as they are: other layers read them",
                    method="enqueue",
                    clause="inputs-read-only",
                )

    def _check_written(self, outputs: Sequence[Array | None]) -> None:
        """Refuse a run that computed nothing, and report elements that were left out."""
        left = [
            0 if array is None or (self.spec.aliases and self.spec.aliases[index] >= 0)
            else unwritten(array, form.type)
            for index, (array, form) in enumerate(zip(outputs, self.spec.output_forms, strict=True))
        ]  # fmt: skip
        if not any(left):
            return
        sizes = [0 if array is None else array.size for array in outputs]
        if left == sizes:
            why = getattr(self.instances[0].plugin, "why_not_computed", None)
            raise refuse(
                self.spec,
                "enqueue returned without an error and wrote nothing to "
                + ("its output" if len(left) == 1 else "any of its outputs")
                + (f": {why}" if why else ""),
                expected="every element of every output written; a kernel that cannot be launched "
                "is a failure: return its error",
                method="enqueue",
                clause="outputs-written",
            )
        for index, (count, size) in enumerate(zip(left, sizes, strict=True)):
            if count:
                self._tell_unwritten(index, count, size)

    def _tell_unwritten(self, index: int, count: int, size: int) -> None:
        text = f"layer {self.spec.layer!r}: plugin {self.spec.name} left {count:,} of {size:,} "
        text += f"elements of output {index} unwritten: they are what the memory held"
        data = {"layer": self.spec.layer, "output": index, "elements": count, "size": size}
        self.report(Finding("plugin-unwritten", "warning", text, data=data))

    def cut(self, shaped: Shaped, outputs: list[Array]) -> list[Array]:
        """Cut outputs to the extents that the plugin decided."""
        cut = list(outputs)
        for index, sized in enumerate(shaped.sized):
            shape = list(shaped.shapes[index])
            for axis, source in sized:
                extent = int(outputs[source].reshape(-1)[0])
                if not 0 <= extent <= shape[axis]:
                    raise refuse(
                        self.spec,
                        f"enqueue says that axis {axis} of output {index} has {extent}",
                        expected=f"0 to {shape[axis]}, as declare_size_tensor announced",
                    )
                shape[axis] = extent
            if sized:  # dense in its real shape, from the start of the memory
                cut[index] = outputs[index].reshape(-1)[: int(np.prod(shape))].reshape(shape)
        return cut

    def _scratch(self) -> Array:
        """Take memory for the workspace.

        Raises:
            PluginError: this machine has not so much.
        """
        try:
            return fenced((self._workspace_bytes,), np.dtype(np.uint8))
        except MemoryError as error:
            raise PluginError(
                f"its workspace of {self._workspace_bytes} bytes is more than there is memory",
                where=self.spec.where,
                fix="see what get_workspace_size returns; set_memory_pool_limit(WORKSPACE, …) "
                "refuses such a plugin when the engine is built",
            ) from error

    def _grow_workspace(self, size: int) -> None:
        self._workspace_bytes = max(self._workspace_bytes, size)

    @abstractmethod
    def _change(self, now: Prepared, *, within: bool) -> None:
        """Shapes changed; `within`: a profile holds them."""

    @abstractmethod
    def _enqueue(
        self, now: Prepared, inputs: list[int], outputs: list[int], workspace: int
    ) -> None: ...

    def _free(self) -> None:
        for instance in self.instances:
            if isinstance(instance.plugin, IPluginV2Ext | IPluginV2DynamicExt):
                instance.quietly("destroy", "detach_from_context")
            instance.destroy()

    def __repr__(self) -> str:
        return f"ContextPlugin({self.spec.name}, layer {self.spec.layer!r})"


def _limits(dtype: Any) -> Any:
    return np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)


def _exceeds(array: Array, dtype: Any) -> bool:
    """Whether whole numbers do not fit another type of whole numbers."""
    if dtype.kind not in "iu" or np.can_cast(array.dtype, dtype) or not array.size:
        return False
    limits = np.iinfo(dtype)
    return bool(array.min() < limits.min or array.max() > limits.max)
