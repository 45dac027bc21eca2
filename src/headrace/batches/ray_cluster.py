"""Units on a Ray cluster: one actor per core group, models opened once in each.

Units go to actors, and only their results come back: a table of some kilobytes each, or the name of
a file where the folder of the batch is shared. Frames never enter Ray's object store.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from headrace._core.findings import Finding
from headrace._core.lazy import import_extra
from headrace._core.text import error_text
from headrace.batches.executor import AHEAD, UnitClock, next_worker, room_after
from headrace.batches.inputs import shown
from headrace.batches.placement import Placement
from headrace.batches.ray_joining import check_cluster, join, require_node
from headrace.batches.scratch import use_own_temporary_folder
from headrace.batches.shipping import Shipment, packed_work, unpacked_work
from headrace.batches.units import BatchUnit, UnitResult
from headrace.batches.work import Work, Worker
from headrace.config import ModelConfig
from headrace.errors import HeadraceError  # the module of pickles: actors have to load it

_MOST_SILENCE_S = 600.0  # without one actor: an autoscaler adds nodes within minutes
_MOST_EARLY_LOSSES = 10  # of nodes and actors before the first result


class BatchActor:
    """Runs units in a process of a Ray cluster."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._counters: dict[str, Any] = {}

    def open(
        self, shipment: Shipment, contents: dict[str, object], parts: str
    ) -> HeadraceError | None:
        """Open the models.

        Args:
            shipment: what to open.
            contents: place -> reference of its content in the object store.
            parts: where results are written if this machine sees that folder.

        Returns:
            The error if they cannot be opened.
        """
        folder = Path(parts)
        try:
            self._worker = opened_worker(shipment, contents, folder if folder.is_dir() else None)
        except HeadraceError as error:
            return error
        metrics = import_extra("ray.util.metrics", "ray")
        for name in ("units", "frames", "objects"):  # for Ray's dashboard
            text = f"{name} that Headrace has done"
            self._counters[name] = metrics.Counter(f"headrace_batch_{name}", description=text)
        return None

    def do(self, unit: BatchUnit) -> UnitResult:
        """Run one unit; it is lost if the actor has started anew since the driver heard of it."""
        if self._worker is None:
            return UnitResult(unit, "lost", error="its actor started anew", begun=False)
        try:
            result = self._worker.do(unit)
        except HeadraceError as error:  # the models are gone: opening them again says so
            self._worker = None
            return UnitResult(unit, "lost", error=str(error), begun=False)
        for name, counter in self._counters.items():
            if count := getattr(result, name, 1):  # Ray refuses to count nothing
                counter.inc(count)
        return result


def shipped(work: Work, configs: Sequence[ModelConfig]) -> tuple[Shipment, dict[str, Any]]:
    """Put everything that workers need into the object store.

    Args:
        work: the pipeline.
        configs: its loaded configs, numbered.

    Returns:
        What to open, and place -> reference of its content. Hold the references as long as workers
        may start: one on another node reads them again.
    """
    ray = import_extra("ray", "ray")
    shipment = packed_work(work, configs)
    return shipment, {p: ray.put(path.read_bytes()) for p, path in shipment.files.items()}


def opened_worker(shipment: Shipment, contents: dict[str, object], parts: Path | None) -> Worker:
    """Open the models of a shipment on this node.

    Args:
        shipment, contents: as `shipped` gave them.
        parts: as `Worker` takes it.

    Raises:
        HeadraceError: a model cannot be opened.
    """
    ray = import_extra("ray", "ray")
    use_own_temporary_folder()  # Ray kills its actors

    def read(location: str) -> bytes:
        content: bytes = ray.get(contents[location])
        return content

    return Worker(unpacked_work(shipment, node_folder(), read), parts)


def node_folder() -> Path:
    """Where shipments and engines of this user lie on a machine: `~/.cache/headrace/batch`."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home, "headrace", "batch")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def on_gpu(work: Work) -> bool:
    """Return whether each actor takes a GPU of its own: with `--device cuda` it does."""
    return work.options.device == "cuda"


def room_for(resources: Mapping[str, float], cores: int, gpus: bool) -> int:
    """How many actors a cluster has cores for, and GPUs if each takes one; 1 at least."""
    room = int(resources.get("CPU", 1)) // cores
    if gpus:
        room = min(room, int(resources.get("GPU", 1)))
    return max(1, room)


class RayExecutor:
    """Runs units on a Ray cluster.

    Actors that end with their node start anew on another, and their units come back as lost.

    Attributes:
        notices: that no node fits yet, where `workers` asks to wait for nodes.

    Args:
        address: `ray`, which takes the cluster of `RAY_ADDRESS`, or else starts one on this
            machine; or `ray://HOST:PORT`.
        work: the pipeline.
        configs: its loaded configs, numbered.
        parts: where results are written by actors that see the folder.
        placement: cores of an actor.
        workers: number of actors; None is as many as the cluster has room for now.
        timeout_s: that one unit may run; None is any time. Opening models does not count.

    Raises:
        MissingExtraError: ray is not installed.
        HeadraceError: the cluster does not answer, or none of its nodes has what an actor needs.
    """

    spared_losses = 5

    def __init__(
        self,
        address: str,
        work: Work,
        configs: Sequence[ModelConfig],
        parts: Path,
        placement: Placement,
        *,
        workers: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        gpus = on_gpu(work)
        self._ray = ray = import_extra("ray", "ray")
        self._ours = not ray.is_initialized()
        self.notices: list[Finding] = []
        cores = max(1, placement.threads)
        here = self._ours and address == "ray" and not os.environ.get("RAY_ADDRESS")
        check_cluster(address, cores, gpus)
        if self._ours:
            join(address)
        shipment, contents = shipped(work, configs)
        try:
            require_node(ray.nodes(), cores, gpus, grows=not here)
        except HeadraceError as error:
            if workers is None:
                if self._ours:
                    ray.shutdown()
                raise
            self.notices.append(
                error.finding.changed(level="warning", fix=("nodes are waited for",))
            )
        if workers is None:
            workers = room_for(ray.cluster_resources(), cores, gpus)
        self.workers = workers
        self.slots = workers * AHEAD
        actor = ray.remote(BatchActor).options(
            num_cpus=cores, num_gpus=int(gpus), max_restarts=-1, max_task_retries=0, name=None
        )
        self._actors = [actor.remote() for _ in range(workers)]
        self._arguments = shipment, contents, str(parts.resolve())
        self._under_way: dict[Any, tuple[int, BatchUnit]] = {}
        self._held: deque[BatchUnit] = deque()
        self._rooms = [1] * workers
        self._clocks = [UnitClock(timeout_s) for _ in self._actors]
        self._too_long: set[object] = set()  # units under way that ran into the time limit
        # number of an actor that opens models, also one that starts anew -> its answer to come
        self._down = {index: self._opening(index) for index in range(workers)}
        self._useful = False
        self._heard_s = monotonic()
        self._early_losses = 0

    def _opening(self, index: int) -> Any:
        return self._actors[index].open.remote(*self._arguments)

    def submit(self, unit: BatchUnit) -> None:
        """Give a unit to the actor that has least to do, or hold it until one is there."""
        self._held.append(unit)
        self._send_held()

    def _send_held(self) -> None:
        loads = [0] * self.workers
        for busy, _ in self._under_way.values():
            loads[busy] += 1
        rooms = [0 if index in self._down else room for index, room in enumerate(self._rooms)]
        while self._held and (free := next_worker(loads, rooms)) is not None:
            loads[free] += 1
            unit = self._held.popleft()
            call = self._actors[free].do.options(name=f"headrace batch: {shown(unit.input)}")
            if not any(index == free for index, _ in self._under_way.values()):
                self._clocks[free].restart(True)
            self._under_way[call.remote(unit)] = free, unit

    def collect(self, timeout_s: float) -> list[UnitResult]:
        """Wait for results, and for actors that are lost; see `Executor.collect`."""
        self._ask_the_lost()
        self._send_held()
        self._stop_the_slow()
        if not self._under_way:
            sleep(timeout_s)
            return []
        ready, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=timeout_s)
        results: list[UnitResult] = []
        for reference in ready:
            try:
                answer = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError as error:  # a defect, in a living actor
                _, unit = self._finished(reference)
                results.append(UnitResult(unit, "failed", error=error_text(error)))
                continue
            except self._ray.exceptions.RayError as error:
                results.append(self._lost(reference, error))
                continue
            index, _ = self._finished(reference)
            results.append(answer)
            if answer.outcome != "lost":
                self._useful = True
                self._rooms[index] = room_after(answer)
            elif index not in self._down:  # the actor has started anew, and nobody was told
                self._down[index] = self._opening(index)
        self._send_held()
        return results

    def _finished(self, reference: Any) -> tuple[int, BatchUnit]:
        """Take a unit off its actor, and return both; the time of the next begins."""
        index, unit = self._under_way.pop(reference)
        self._clocks[index].restart(any(other == index for other, _ in self._under_way.values()))
        return index, unit

    def _stop_the_slow(self) -> None:
        """End actors that have been at one unit for too long; they start anew."""
        for index, clock in enumerate(self._clocks):
            if clock.is_over:
                clock.restart(False)
                self._too_long.add(self._oldest(index))
                self._ray.kill(self._actors[index], no_restart=False)

    def _oldest(self, index: int) -> Any:
        return next(ref for ref, (other, _) in self._under_way.items() if other == index)

    def _lost(self, reference: object, error: Exception) -> UnitResult:
        """The result of a unit that went with its actor; the oldest one of an actor had begun."""
        index, unit = self._under_way[reference]
        oldest = self._oldest(index)
        self._under_way.pop(reference)
        self._clocks[index].restart(False)
        slow = reference in self._too_long
        self._useful |= slow
        if index not in self._down:
            self._down[index] = self._opening(index)
            self._count_loss(error)
        if slow:
            self._too_long.remove(reference)
            return UnitResult(unit, "failed", error=self._clocks[index].error())
        text = f"its node or actor was lost: {type(error).__name__}"
        return UnitResult(unit, "lost", error=text, begun=reference == oldest)

    def _count_loss(self, error: Exception) -> None:
        """Give up if actors never come to a result.

        Raises:
            HeadraceError: that many have ended.
        """
        self._early_losses += not self._useful
        if self._early_losses >= _MOST_EARLY_LOSSES:
            raise HeadraceError(
                f"actors end before their first result: {error_text(error)}",
                fix="headrace batch without --on shows what goes wrong",
            )

    def _ask_the_lost(self) -> None:
        """Take actors in that have opened the models; until then they get no units.

        Raises:
            HeadraceError: the models cannot be opened; no actor answers for long.
        """
        for index, reference in list(self._down.items()):
            if not self._ray.wait([reference], timeout=0)[0]:
                continue
            try:
                failure = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                if isinstance(error, self._ray.exceptions.ActorDiedError):
                    self._count_loss(error)
                self._down[index] = self._opening(index)
                continue
            if failure is not None:
                raise failure
            del self._down[index]
        if len(self._down) < len(self._actors):
            self._heard_s = monotonic()
        elif monotonic() - self._heard_s > _MOST_SILENCE_S:
            raise HeadraceError(
                f"no actor of the cluster has answered for {_MOST_SILENCE_S / 60:g} minutes",
                fix="add nodes, and go on with --resume",
            )

    def close(self) -> None:
        """End every actor at once."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []
        if self._ours:
            self._ray.shutdown()
