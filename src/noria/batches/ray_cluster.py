"""Units on a Ray cluster: one actor per core group, models opened once in each.

Units go to actors, and only their results come back: a table of some kilobytes each, or the name of
a file where the folder of the batch is shared. Frames never enter Ray's object store.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from noria._core.errors import NoriaError
from noria._core.lazy import import_extra
from noria._core.text import error_text
from noria.batches.inputs import shown
from noria.batches.placement import Placement
from noria.batches.shipping import Shipment, packed_work, unpacked_work
from noria.batches.units import BatchUnit, UnitResult
from noria.batches.work import Work, Worker
from noria.config import ModelConfig

_AHEAD = 2  # units at an actor: one that runs, one that waits
_MOST_SILENCE_S = 600.0  # without one actor: an autoscaler adds nodes within minutes
_MOST_EARLY_LOSSES = 10  # of nodes and actors before the first result


class BatchActor:
    """Runs units in a process of a Ray cluster.

    Args:
        shipment: what to open.
        contents: place -> reference of its content in the object store.
        parts: where results are written if this machine sees that folder.
    """

    def __init__(self, shipment: Shipment, contents: dict[str, Any], parts: str) -> None:
        self._shipment = shipment
        self._contents = contents
        self._parts = Path(parts)
        self._worker: Worker | None = None
        self._counters: dict[str, Any] = {}

    def do(self, unit: BatchUnit) -> UnitResult | NoriaError:
        """Run one unit; an error if the models cannot be opened."""
        try:
            if self._worker is None:
                self._worker = self._opened()
        except NoriaError as error:
            return error
        result = self._worker.do(unit)
        for name, counter in self._counters.items():
            if count := getattr(result, name, 1):  # Ray refuses to count nothing
                counter.inc(count)
        return result

    def is_there(self) -> bool:
        """Answer, once the actor has started."""
        return True

    def _opened(self) -> Worker:
        ray = import_extra("ray", "ray")

        def read(place: str) -> bytes:
            content: bytes = ray.get(self._contents[place])
            return content

        metrics = import_extra("ray.util.metrics", "ray")
        for name in ("units", "frames", "objects"):  # for Ray's dashboard
            text = f"{name} that Noria has done"
            self._counters[name] = metrics.Counter(f"noria_batch_{name}", description=text)
        work = unpacked_work(self._shipment, node_folder(), read)
        return Worker(work, self._parts if self._parts.is_dir() else None)


def node_folder() -> Path:
    """Where shipments and engines of this user lie on a machine: `~/.cache/noria/batch`."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home, "noria", "batch")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class RayExecutor:
    """Runs units on a Ray cluster.

    Actors that end with their node start anew on another, and their units come back as lost.

    Args:
        address: `ray`, which takes the cluster of `RAY_ADDRESS`, or else starts one on this
            machine; or `ray://HOST:PORT`.
        work: the pipeline.
        configs: its loaded configs, numbered.
        parts: where results are written by actors that see the folder.
        placement: cores of an actor.
        workers: number of actors; None is as many as the cluster has cores for now.

    Raises:
        MissingExtraError: ray is not installed.
        NoriaError: the cluster does not answer.
    """

    spared_losses = 5

    def __init__(
        self,
        address: str,
        work: Work,
        configs: Sequence[ModelConfig],
        parts: Path,
        placement: Placement,
        workers: int | None,
    ) -> None:
        self._ray = ray = import_extra("ray", "ray")
        self._ours = not ray.is_initialized()
        if self._ours:
            try:
                ray.init(
                    address=None if address == "ray" else address,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
            except Exception as error:  # ray has many, of several packages
                raise NoriaError(
                    f"the Ray cluster does not answer: {error_text(error)}", where=address
                ) from error
        shipment = packed_work(work, configs)
        # held here: an actor that starts anew on another node reads them again
        self._contents = {p: ray.put(path.read_bytes()) for p, path in shipment.files.items()}
        cores = max(1, placement.threads)
        if workers is None:
            workers = max(1, int(ray.cluster_resources().get("CPU", 1)) // cores)
        self.workers = workers
        self.slots = workers * _AHEAD
        actor = ray.remote(BatchActor).options(
            num_cpus=cores, max_restarts=-1, max_task_retries=0, name=None
        )
        self._actors = [
            actor.remote(shipment, self._contents, str(parts.resolve())) for _ in range(workers)
        ]
        self._under_way: dict[Any, tuple[int, BatchUnit]] = {}
        self._held: deque[BatchUnit] = deque()
        self._down: dict[int, Any] = {}  # number of an actor -> its answer to come
        self._useful = False
        self._heard_s = monotonic()
        self._early_losses = 0

    def submit(self, unit: BatchUnit) -> None:
        """Give a unit to the actor that has least to do, or hold it until one is there."""
        self._held.append(unit)
        self._send_held()

    def _send_held(self) -> None:
        loads = [0 if place not in self._down else _AHEAD for place in range(len(self._actors))]
        for place, _ in self._under_way.values():
            loads[place] += 1
        while self._held and min(loads) < _AHEAD:
            place = loads.index(min(loads))
            loads[place] += 1
            unit = self._held.popleft()
            call = self._actors[place].do.options(name=f"noria batch: {shown(unit.input)}")
            self._under_way[call.remote(unit)] = place, unit

    def collect(self, timeout_s: float) -> list[UnitResult]:
        """Wait for results, and for actors that are lost; see `Executor.collect`."""
        self._ask_the_lost()
        self._send_held()
        if not self._under_way:
            sleep(timeout_s)
            return []
        ready, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=timeout_s)
        results: list[UnitResult] = []
        for reference in ready:
            try:
                found = self._ray.get(reference)
            except self._ray.exceptions.RayTaskError as error:  # a defect, in a living actor
                _, unit = self._under_way.pop(reference)
                results.append(UnitResult(unit, "failed", error=error_text(error)))
                continue
            except self._ray.exceptions.RayError as error:
                results.append(self._lost(reference, error))
                continue
            self._under_way.pop(reference)
            if isinstance(found, NoriaError):
                raise found
            self._useful = True
            results.append(found)
        return results

    def _lost(self, reference: Any, error: Exception) -> UnitResult:
        """The result of a unit that went with its actor; the oldest one of an actor had begun."""
        place, unit = self._under_way[reference]
        oldest = next(ref for ref, (other, _) in self._under_way.items() if other == place)
        self._under_way.pop(reference)
        if place not in self._down:
            self._down[place] = self._actors[place].is_there.remote()
            self._early_losses += not self._useful
        if self._early_losses >= _MOST_EARLY_LOSSES:
            raise NoriaError(
                f"actors end before their first result: {error_text(error)}",
                fix="noria batch without --on shows what goes wrong",
            )
        text = f"its node or actor was lost: {type(error).__name__}"
        return UnitResult(unit, "lost", error=text, begun=reference == oldest)

    def _ask_the_lost(self) -> None:
        """Take actors back that have started anew; until then they get no units."""
        for place, reference in list(self._down.items()):
            if not self._ray.wait([reference], timeout=0)[0]:
                continue
            try:
                self._ray.get(reference)
            except self._ray.exceptions.RayError:
                self._down[place] = self._actors[place].is_there.remote()
            else:
                del self._down[place]
        if len(self._down) < len(self._actors):
            self._heard_s = monotonic()
        elif monotonic() - self._heard_s > _MOST_SILENCE_S:
            raise NoriaError(
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
