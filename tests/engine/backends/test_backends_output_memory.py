"""Outputs that are written into memory that the caller gives."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from headrace.engine import BuildOptions, build
from headrace.engine.backends import installed_backends
from headrace.engine.session import Session
from headrace.errors import EngineError
from headrace.network import network_from_onnx
from tests.engine.backends.test_backends import convolutions, images, node, value
from tests.network.onnx_models import model_of, save

each_backend = pytest.mark.parametrize(
    "backend", [b for b in installed_backends() if b in ("onnxruntime", "openvino")]
)


class Shelf:
    """Gives parts of one block; `refused` says which shapes it does not."""

    def __init__(self, refused: tuple[int, ...] = ()) -> None:
        self.block = np.full(1 << 16, 7, np.float32)
        self.used = 0
        self.refused = refused
        self.asked: list[tuple[int, ...]] = []

    def take(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        self.asked.append(shape)
        if len(shape) in self.refused:
            return None
        start, count = self.used, int(np.prod(shape)) * dtype.itemsize // 4
        self.used += -(-count // 16) * 16
        return self.block[start : start + count].view(dtype).reshape(shape)


def session_of(model: Any, folder: Any, backend: str, **options: Any) -> Session:
    network = network_from_onnx(save(model, folder / "m.onnx"))
    return build(network, BuildOptions(runtime=backend, **options)).open_session(threads=1)


@pytest.mark.parametrize("refused", [(), (2,)])
@pytest.mark.parametrize("batch", ["batch", 3])
@each_backend
def test_outputs_are_written_where_they_shall(backend, batch, refused, tmp_path) -> None:
    with session_of(convolutions(batch=batch), tmp_path, backend, max_batch=3) as session:
        for seed in range(3):
            for count in (3, 1) if batch == "batch" else (3,):
                feeds = {"x": images(count, seed=seed)}
                session.output_memory = None
                expected = session.run(feeds)
                session.output_memory = shelf = Shelf(refused)
                found = session.run(feeds)
                assert shelf.asked == [(count, 8, 8, 12), (count, 8)]
                for name, array in found.items():
                    assert np.array_equal(array, expected[name])
                    refuses = array.ndim in refused
                    if backend == "openvino" and count < 3:
                        continue  # compiled for any batch: may be anywhere
                    assert np.shares_memory(array, shelf.block) is not refuses
                kept = {name: array.copy() for name, array in found.items()}
                session.output_memory = None
                session.run({"x": images(count, seed=99)})
                assert all(np.array_equal(found[n], kept[n]) for n in found), "nobody writes there"


@each_backend
def test_padded_and_split_batches_and_unknown_shapes(backend, tmp_path) -> None:
    with session_of(convolutions(batch=2), tmp_path, backend, max_batch=5) as session:
        feeds = {"x": images(5)}
        expected = session.run(feeds)
        session.output_memory = Shelf()
        found = session.run(feeds)
        assert all(np.allclose(found[n], expected[n], atol=1e-6) for n in expected)
    model = model_of(
        [node("NonZero", ["x"], ["where"]), node("Transpose", ["where"], ["y"], perm=[1, 0])],
        [value("x", 1, ["n", 4])],
        [value("y", 7, ["found", 2])],
    )
    with session_of(model, tmp_path, backend, max_batch=4) as session:
        session.output_memory = Shelf()
        ones = np.zeros((2, 4), np.float32)
        ones[:, 1] = 1  # as many as items
        assert session.run({"x": ones})["y"].tolist() == [[0, 1], [1, 1]]
        ones[:] = 1
        with pytest.raises(EngineError, match="its first axis is not the batch"):
            session.run({"x": ones})
        with pytest.raises(
            EngineError, match=r"a shuffle before markOutput.* dimensions \(1, 4, 2\)"
        ):
            session.run({"x": ones[:1]})


@pytest.mark.slow
@each_backend
def test_arrays_are_given_back(backend, tmp_path) -> None:
    from headrace.custom.guard.arena import OutputArena

    names = ("x", "y")
    model = model_of([node("Relu", ["x"], ["y"])], *([value(n, 1, ["n", 30000])] for n in names))
    arena = OutputArena()
    with session_of(model, tmp_path, backend, max_batch=2) as session:
        session.output_memory = arena
        for i in range(1, 6):
            found = session.run({"x": np.full((2, 30000), i, np.float32)})
            assert (found["y"] == i).all()
            del found
        gc.collect()
        assert len(arena.free) <= 2
    gc.collect()
    assert len(arena.free) in (1, 2)
