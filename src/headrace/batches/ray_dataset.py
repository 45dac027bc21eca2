"""The objects of videos and images as a Ray dataset: `headrace.ray.read_objects`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from headrace._core.errors import HeadraceError
from headrace._core.lazy import import_extra
from headrace.batches.inputs import expand_inputs, shown
from headrace.batches.ray_cluster import on_gpu, opened_worker, room_for, shipped
from headrace.batches.shipping import Shipment
from headrace.batches.tables import read_table
from headrace.batches.units import BatchUnit
from headrace.batches.work import Work
from headrace.infer.run_options import RunOptions
from headrace.pipeline.opening import pipeline_spec
from headrace.pipeline.stage_order import numbered

if TYPE_CHECKING:
    import pyarrow
    import ray.data

_COLUMN = "input"
_MOST_BLOCKS = 1024  # of names; an actor takes the names of a block one by one


class ObjectReader:
    """Runs models over inputs by name, one after the other; made in an actor of Ray Data.

    Args:
        shipment: what to open.
        contents: place -> reference of its content in the object store.

    Raises:
        HeadraceError: a model cannot be opened.
    """

    def __init__(self, shipment: Shipment, contents: dict[str, object]) -> None:
        self._worker = opened_worker(shipment, contents, None)

    def __call__(self, batch: dict[str, npt.NDArray[np.object_]]) -> Iterator[pyarrow.Table]:
        """Yield the table of each input's objects.

        Raises:
            HeadraceError: an input cannot be read, or a model fails on it.
        """
        for name in batch[_COLUMN]:
            result = self._worker.do(BatchUnit(str(name), whole=True))
            if result.outcome != "done":
                raise HeadraceError(result.error, where=shown(str(name)))
            yield read_table(result.files["parquet"])


def read_objects(
    *configs: str | PathLike[str],
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    tracker: str | None = None,
    threads: int = 1,
    concurrency: int | tuple[int, int] | None = None,
    **options: Any,
) -> ray.data.Dataset:
    """Return the objects of videos and images as a dataset that is computed while it is read.

        found = headrace.ray.read_objects("pgie.txt", inputs="s3://bucket/videos/", concurrency=8)
        found.filter(lambda row: row["label"] == "person").write_parquet("s3://bucket/people/")

    Videos are read and decoded in the actors that run the models, so that frames never enter the
    object store: it holds names and tables of objects, as much as Ray Data's back-pressure allows.
    An input that fails ends the reading; `DataContext.max_errored_blocks` lets some fail.

    Args:
        configs: nvinfer configs or bare models, primary ones first. Models, labels and libraries
            travel with them.
        inputs: as `headrace.batch` takes them; every node has to see them by the same name.
        tracker: as `headrace.batch` takes it.
        threads: cores of each actor.
        concurrency: number of actors, or the least and the most of a pool that grows; None is as
            many as the cluster has cores for now.
        options: as `RunOptions` has them: `profile`, `limit`, ….

    Returns:
        One row for each object, with the columns of the tables of a batch.

    Raises:
        HeadraceError: a config or an input is refused.
        MissingExtraError: ray or pyarrow is not installed.
    """
    data = import_extra("ray.data", "ray")
    import_extra("pyarrow", "arrow")
    names = [inputs] if isinstance(inputs, str | PathLike) else list(inputs)
    words = [fspath(name) for name in names]
    spec = pipeline_spec(configs=[fspath(c) for c in configs], sources=words, tracker=tracker)
    work = Work(spec, RunOptions(threads=threads, **options), cpus=threads)
    shipment, contents = shipped(work, numbered(spec.load_models(), None)[0])
    rows = [{_COLUMN: name} for name in expand_inputs(words)]
    if concurrency is None:
        cluster = import_extra("ray", "ray").cluster_resources()
        concurrency = max(1, min(len(rows), room_for(cluster, threads, on_gpu(work))))
    dataset: ray.data.Dataset = data.from_items(
        rows, override_num_blocks=min(len(rows), _MOST_BLOCKS)
    ).map_batches(
        ObjectReader,
        fn_constructor_args=(shipment, contents),
        batch_size=1,
        num_cpus=threads,
        num_gpus=int(on_gpu(work)),
        concurrency=concurrency,
    )
    return dataset
