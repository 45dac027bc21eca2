"""Plans: built engines, saved as `.engine` files. Data only, never code.

Layout, little endian:

    8 bytes   magic
    4 bytes   format version
    4 bytes   size of the header
    8 bytes   size of the whole file
    32 bytes  sha256 of the header
    header    JSON, `PlanHeader`
    blobs     one after the other, as the header lists them
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeGuard

from headrace._core.errors import EngineError
from headrace._core.files import locked, os_errors, sha256_of, write_atomically
from headrace._core.findings import Finding
from headrace._core.formats.sniff import HEAD_BYTES, PLAN_MAGIC
from headrace._core.mapped import give_back, mapped, read_once
from headrace._core.plain_record import PlainRecord
from headrace.engine.backends import (
    Backend,
    CompilingBackend,
    ExternalWeightsBackend,
    Runner,
    RunnerOptions,
    get_backend,
)
from headrace.engine.machine import usable_cores
from headrace.engine.plan_header import BlobRecord, PlanHeader, TacticRecord
from headrace.engine.plan_prefix import (
    FORMAT_VERSION,
    MAX_HEADER_BYTES,
    PREFIX,
    check_prefix,
    checked_header,
    damaged,
)
from headrace.engine.tactic import HALVES, Tactic
from headrace.network.external_data import MAX_MODEL_BYTES, joined
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace.engine.session import Session
    from headrace.plugins.registry import PluginRegistry

MODEL_BLOB = "model"
WEIGHTS_BLOB = "weights"
"""Weights of a large model, apart from its graph; see `headrace.network.external_data`."""
COMPILED_BLOB = "compiled"
"""The model as a runtime compiled it; see `headrace.engine.backends.CompilingBackend`."""
_ALIGNMENT = 64


Blob = Any  # bytes; a view of a mapped file for `WEIGHTS_BLOB`


class PlanSummary(PlainRecord, frozen=True):
    """The facts that `headrace show x.engine` prints; `header` has every detail."""

    path: Path | None
    format_version: int
    headrace: str
    runtime: str
    tactic: str
    precision: str
    max_batch: int
    fixed_batch: int | None
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    model: str
    model_sha256: str
    size_bytes: int
    decisions: tuple[Finding, ...]
    plugins: tuple[str, ...] = ()


class Plan:
    """A built engine.

    Attributes:
        header: everything but the blobs.
        blobs: name -> bytes, as the header lists them.
        path: the file it was read from or saved to; None while in memory only.
        decisions: notices of building, finding or replacing it.
        threads: default of `open_session`.
        registry: where the creators of its plugins are; None: those of this process.
        held: kept as long as the plan is.
    """

    def __init__(
        self, header: PlanHeader, blobs: Mapping[str, Blob], *, path: Path | None = None
    ) -> None:
        self.header = header
        self.blobs = dict(blobs)
        self.path = path
        self.decisions: list[Finding] = list(header.decisions)
        self.threads: int | None = None
        self.registry: PluginRegistry | None = None
        self.held: object = None
        self._ready: Session | None = None

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Input bindings; the first of a batched plan is the image."""
        return tuple(record.spec for record in self.header.inputs)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Output bindings in order."""
        return tuple(record.spec for record in self.header.outputs)

    @property
    def tactic(self) -> TacticRecord | None:
        """The way this plan is run."""
        return next((t for t in self.header.tactics if t.chosen), None)

    def open_session(
        self,
        *,
        threads: int | None = None,
        streams: int | None = None,
        spinning: bool | None = None,
        tactic: Tactic | None = None,
    ) -> Session:
        """Get the plan ready to run.

        Args:
            threads: threads of one run; None: `Plan.threads`, else what tuning found best on this
                machine, else every core.
            streams: see `headrace.engine.backends.RunnerOptions`; None: as tuning found best, else
            one.
            spinning: as there; None: as tuning found best, else False.
            tactic: run it this way, whatever it was built for; decides all of the above.

        Raises:
            EngineError: the runtime is missing or refuses the model; an INT8 engine is to run on
                a runtime that it was not made for.
        """
        from headrace.engine.session import FreeSession, Session

        runtime = self.header.runtime.name
        if tactic is None:
            options = self.run_options(threads=threads, streams=streams, spinning=spinning)
        else:
            runtime = tactic.runtime
            self._check_int8(runtime)
            options = tactic.run_options(self.header.max_batch, self.header.precision)
            options = replace(options, batched=self.header.batched)
        ready, self._ready = self._ready, None
        if ready is not None:
            if ready.options == options and runtime == self.header.runtime.name:
                return ready
            ready.close()
        backend = get_backend(runtime)
        compiled = self.blobs.get(COMPILED_BLOB) if runtime == self.header.runtime.name else None
        if compiled is not None and isinstance(backend, CompilingBackend):
            runner: Runner = backend.open(self.blobs[MODEL_BLOB], options, compiled)
        elif self.header.plugins:
            runner = self._open_with_plugins(backend, options)
        elif WEIGHTS_BLOB in self.blobs and self._opens_apart(backend):
            weights = memoryview(self.blobs[WEIGHTS_BLOB])
            with read_once(weights):
                runner = backend.open_with_weights(self.blobs[MODEL_BLOB], weights, options)
        elif WEIGHTS_BLOB in self.blobs:
            runner = backend.open(self.whole_model(), options)
        else:
            runner = backend.open(self.blobs[MODEL_BLOB], options)
        where = str(self.path or self.header.model.name)
        kind = Session if self.header.batched else FreeSession
        return kind(runner, self.header, where=where, options=options)

    @property
    def is_large(self) -> bool:
        """Whether its model is too large for one ONNX message."""
        return len(self.blobs.get(WEIGHTS_BLOB, b"")) > MAX_MODEL_BYTES

    def _opens_apart(self, backend: Backend) -> TypeGuard[ExternalWeightsBackend]:
        """Whether a runtime takes the weights apart from the graph: where it likes to, or must."""
        apart = isinstance(backend, ExternalWeightsBackend)
        if self.is_large and not apart:
            raise EngineError(f"{backend.name} takes no models over 2 GiB")
        return apart and (self.is_large or getattr(backend, "maps_weights", False))

    def whole_model(self) -> bytes:
        """The model as one ONNX message, its weights inside.

        Raises:
            EngineError: it is over 2 GiB.
        """
        model: bytes = self.blobs[MODEL_BLOB]
        if WEIGHTS_BLOB not in self.blobs:
            return model
        if self.is_large:
            where = str(self.path or self.header.model.name)
            raise EngineError("the model is over 2 GiB: no ONNX message holds it", where=where)
        proto = joined(model, memoryview(self.blobs[WEIGHTS_BLOB]))
        return bytes(proto.SerializeToString(deterministic=True))

    def _open_with_plugins(self, backend: Backend, options: RunnerOptions) -> Runner:
        from headrace.engine.plugin_graph.opening import load_plugins, open_plugin_graph
        from headrace.plugins.registry import known_plugins

        where = str(self.path or self.header.model.name)
        records = self.header.plugins
        plugins = load_plugins(records, self.blobs, self.registry or known_plugins(), where)
        compiled = self.blobs if backend.name == self.header.runtime.name else None
        return open_plugin_graph(
            backend, self.blobs[MODEL_BLOB], options, records, plugins, compiled=compiled
        )

    def _check_int8(self, runtime: str) -> None:
        rules, made_for = self.header.rules, self.header.runtime.name
        if runtime != made_for and rules is not None and rules.table is not None:
            raise EngineError(
                f"its INT8 is made for {made_for}, not for {runtime}",
                where=str(self.path or self.header.model.name),
                fix=f"build another engine: headrace build CONFIG --backend {runtime}",
            )

    def run_options(
        self,
        *,
        threads: int | None = None,
        streams: int | None = None,
        spinning: bool | None = None,
    ) -> RunnerOptions:
        """Make the options that `open_session` with the same arguments passes to the runtime."""
        tactic = self.tactic
        threads = self.threads if threads is None else threads
        if threads is None and streams is None and self.decides_sharing and tactic is not None:
            threads, streams = tactic.threads, tactic.streams
            spinning = tactic.spinning if spinning is None else spinning
        return RunnerOptions(
            threads=threads,
            streams=streams or 1,
            spinning=bool(spinning),
            optimization=tactic.optimization if tactic is not None else "all",
            max_batch=self.header.max_batch,
            batched=self.header.batched,
            half=HALVES.get(self.header.precision),
            graph=tactic is not None and tactic.graph and streams in (None, 1),
        )

    @property
    def decides_sharing(self) -> bool:
        """True if threads and streams are pinned, or tuned on as many cores as there are here."""
        tactic, tuning = self.tactic, self.header.tuning
        if tactic is None or (tactic.threads is None and tactic.streams is None):
            return False
        return tuning is None or tuning.cores == usable_cores()

    def keep_ready(self, session: Session) -> None:
        """Hand `session` out at the next `open_session` with the options it was opened with."""
        self._ready = session

    def describe(self) -> PlanSummary:
        """Plain facts about the plan, for people."""
        header = self.header
        return PlanSummary(
            path=self.path,
            format_version=FORMAT_VERSION,
            headrace=header.headrace,
            runtime=f"{header.runtime.name} {header.runtime.version}",
            tactic=str(self.tactic.tactic) if self.tactic else header.runtime.name,
            precision=header.precision,
            max_batch=header.max_batch,
            fixed_batch=header.fixed_batch,
            inputs=self.inputs,
            outputs=self.outputs,
            model=header.model.name,
            model_sha256=header.model.sha256,
            size_bytes=sum(record.size_bytes for record in header.blobs),
            decisions=tuple(self.decisions),
            plugins=tuple(map(str, header.plugins)),
        )

    def to_chunks(self) -> list[bytes | memoryview]:
        """The bytes of the plan file, in pieces (blobs are not copied)."""
        header = self.header.to_json()
        if len(header) > MAX_HEADER_BYTES:
            raise EngineError(f"the plan's header is {len(header)} bytes, too many to save")
        blobs = [self.blobs[record.name] for record in self.header.blobs]
        if WEIGHTS_BLOB in self.blobs:  # mapped weights begin where vectors may
            before = next(i for i, r in enumerate(self.header.blobs) if r.name == WEIGHTS_BLOB)
            start = PREFIX.size + len(header) + sum(map(len, blobs[:before]))
            header += b" " * (-start % _ALIGNMENT)
        size = PREFIX.size + len(header) + sum(map(len, blobs))
        digest = bytes.fromhex(sha256_of(header))
        return [
            PREFIX.pack(PLAN_MAGIC, FORMAT_VERSION, len(header), size, digest),
            header,
            *blobs,
        ]

    def save(self, path: str | Path) -> None:
        """Write the plan as `path`, whole or not at all; a plan that stands there is replaced.

        Raises:
            EngineError: something that is not a plan stands there, or the file cannot be written.
        """
        path = Path(path)
        with locked(path):
            if path.exists() and not is_plan_file(path):
                raise EngineError(
                    "is not a headrace plan and is not overwritten",
                    where=str(path),
                    fix="choose another name",
                )
            self.write(path)

    def write(self, path: Path) -> None:
        """Write the plan without a check of the file in its place; the caller holds its lock."""
        with os_errors(EngineError, "the plan cannot be written", path):
            write_atomically(path, self.to_chunks())
        self.path = path

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan file; every length and every hash in it is checked first.

        Raises:
            EngineError: missing, damaged, of another format version, or not a plan at all.
        """
        path = Path(path)
        with _opened(path) as (file, size, header_size, digest):

            def take(name: str, start: int, count: int) -> Blob:
                if name == WEIGHTS_BLOB:
                    return mapped(file.fileno(), start, count)
                file.seek(start)
                return file.read(count)

            return cls._of(header_size, digest, size, take, str(path), path)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, *, path: Path | None = None) -> Plan:
        """`load` for bytes that are already here.

        Raises:
            EngineError: as `load`.
        """
        where = str(path) if path else "plan"
        header_size, digest = check_prefix(bytes(data[:HEAD_BYTES]), len(data), where)

        def take(name: str, start: int, count: int) -> Blob:
            part = data[start : start + count]
            return part if name == WEIGHTS_BLOB else bytes(part)

        return cls._of(header_size, digest, len(data), take, where, path)

    @classmethod
    def _of(
        cls,
        header_size: int,
        digest: bytes,
        size: int,
        take: Callable[[str, int, int], Blob],
        where: str,
        path: Path | None,
    ) -> Plan:
        """Read a plan of `size` bytes with a checked prefix; `take(name, start, count)` reads."""
        at = PREFIX.size
        header = checked_header(take("", at, header_size), digest, where)
        blobs: dict[str, Blob] = {}
        at += header_size
        for record in header.blobs:
            blob = take(record.name, at, max(0, min(record.size_bytes, size - at)))
            at += record.size_bytes
            if len(blob) != record.size_bytes or record.name in blobs:
                raise damaged(f"blob {record.name!r} is not all there, or there twice", where)
            if sha256_of(blob) != record.sha256:
                raise damaged(f"blob {record.name!r} does not match its sha256", where)
            if isinstance(blob, memoryview):
                give_back(blob)
            blobs[record.name] = blob
        if at != size:
            raise damaged(f"{size - at} bytes follow the last blob", where)
        if MODEL_BLOB not in blobs:
            raise damaged("there is no model in it", where)
        return cls(header, blobs, path=path)

    def __repr__(self) -> str:
        name = self.path.name if self.path else "in memory"
        header = self.header
        return f"Plan({name}: {header.model.name}, {header.precision}, batch {header.max_batch})"


def blob_record(name: str, blob: Blob) -> BlobRecord:
    """The header's entry for `blob`."""
    return BlobRecord(name=name, size_bytes=len(blob), sha256=sha256_of(blob))


def is_plan_file(path: Path) -> bool:
    """Whether `path` is a file that headrace wrote as a plan, damaged or not."""
    try:
        if not path.is_file():
            return False
        with open(path, "rb") as file:
            return file.read(len(PLAN_MAGIC)) == PLAN_MAGIC
    except OSError:
        return False


def read_header(path: Path) -> PlanHeader:
    """Read the header of the plan file `path`; its blobs are not read.

    Raises:
        EngineError: as `Plan.load`, but for damage in the blobs.
    """
    with _opened(path) as (file, _, size, digest):
        file.seek(PREFIX.size)
        return checked_header(file.read(size), digest, str(path))


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int, int, bytes]]:
    """Open a plan file; yields it, its size, the size of its header and the header's hash."""
    where = str(path)
    with os_errors(EngineError, "the plan cannot be read", where):
        if not stat.S_ISREG(path.stat().st_mode):  # before open: a pipe would block
            raise EngineError("is not a regular file", where=where)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            yield file, size, *check_prefix(file.read(HEAD_BYTES), size, where)
