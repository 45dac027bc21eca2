"""Outputs that an engine writes where the worker reads them: no copies, nobody is harmed."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from headrace.custom import open_library
from headrace.custom.compile.toolchain import gpu_present
from headrace.custom.guard import GuardOptions, LibraryDiedError, keeper
from headrace.custom.guard.arena import MIN_BYTES, OutputArena
from headrace.custom.guard.library import GuardedLibrary
from headrace.custom.guard.repro import load_case
from headrace.diagnose.replay import repeat
from headrace.infer.inferencer import Inferencer
from headrace.media.frame import Frame
from headrace.meta import DetectionParams, Layer, NetworkInfo
from tests.custom.conftest import Compile

pytestmark = pytest.mark.skipif(
    keeper.can_guard() is not None, reason=f"no workers here: {keeper.can_guard()}"
)
NETWORK, PARAMS = NetworkInfo(32, 32, 3), DetectionParams(1, np.zeros(1, np.float32))
ITEM = (3, 100, 100)  # 120,000 bytes: no whole number of pages
SIZE = 30_000


@pytest.fixture
def guarded(compile_parser: Compile, tmp_path: Path) -> Iterator[GuardedLibrary]:
    library = open_library(
        compile_parser("shared.cpp"),
        guard="always",
        guard_options=GuardOptions(crash_dir=tmp_path / "crashes", timeout_s=10),
    )
    assert isinstance(library, GuardedLibrary)
    yield library
    library.close()


def taken(library: GuardedLibrary, items: int = 1) -> npt.NDArray[np.float32]:
    array = library.output_memory.take(np.float32, (items, *ITEM))
    assert array is not None
    return array


def sums(library: GuardedLibrary, name: str, *tensors: npt.NDArray[Any]) -> list[float]:
    parse = library.bbox_parser(name)
    layers = {f"layer{i}": Layer(f"layer{i}", tensor) for i, tensor in enumerate(tensors)}
    return [float(v) for v in parse(layers, NETWORK, PARAMS).boxes[:, 0]]


def copied(library: GuardedLibrary) -> bool:
    """Whether any tensor was put into the input region."""
    running = library.process._worker
    assert running is not None
    region = running.inputs
    return bool(region.view(8192, np.dtype(np.uint8), (region.size - 8192,)).any())


def test_an_output_is_read_where_it_is(guarded: GuardedLibrary) -> None:
    batch = taken(guarded, 3)
    for value in (1, 2):  # one memory, other values
        batch[:] = np.arange(value, value + 3).reshape(3, 1, 1, 1)
        for i, item in enumerate(batch):
            assert sums(guarded, "ParseSum", item) == [SIZE * (value + i)]
    assert not copied(guarded)


def test_beside_outputs_that_are_elsewhere(guarded: GuardedLibrary) -> None:
    shared, plain = taken(guarded)[0], np.full(ITEM, 3, np.float32)
    shared.fill(2)
    assert sums(guarded, "ParseSum", plain, shared, plain * 2, shared) == [
        SIZE * 3, SIZE * 2, SIZE * 6, SIZE * 2,
    ]  # fmt: skip
    assert copied(guarded)


def test_a_parser_that_decodes_in_place_has_a_copy(guarded: GuardedLibrary) -> None:
    batch = taken(guarded, 2)
    parse = guarded.bbox_parser("ParseInPlace")
    for value in range(1, 5):
        batch.fill(value)
        for item in batch:
            found = parse({"layer": Layer("layer", item)}, NETWORK, PARAMS)
            assert found.boxes[0, 0] == SIZE * (value + 1)
        assert (batch == value).all(), "the application's tensor is as it was"
    batch.fill(9)
    assert sums(guarded, "ParseSum", batch[1]) == [SIZE * 9], "and later calls see it as it is"


def test_two_layers_on_one_page_are_decoded_in_place(guarded: GuardedLibrary) -> None:
    flat = taken(guarded).reshape(-1)
    parse = guarded.bbox_parser("ParseInPlace")
    for value in (1, 2, 3):
        flat.fill(value)
        layers = {"a": Layer("a", flat[:15_000]), "b": Layer("b", flat[15_000:])}
        found = parse(layers, NETWORK, PARAMS)
        assert found.boxes[:, 0].tolist() == [15_000 * (value + 1)] * 2
        assert (flat == value).all()


def test_writing_behind_an_item_harms_no_other(guarded: GuardedLibrary) -> None:
    batch = taken(guarded, 3)
    batch.fill(5)
    with pytest.raises(LibraryDiedError, match=r"crashed \(SIGSEGV\).* past the end of .*layer0"):
        sums(guarded, "ParseBehind", batch[1])
    assert (batch == 5).all()
    assert sums(guarded, "ParseSum", batch[2]) == [SIZE * 5], "the next worker sees it, too"


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("far", [1_500, 100_000, 250_000])  # numbers of 4 bytes
@pytest.mark.parametrize("size", [8, SIZE])
def test_leaving_a_tensor_is_noticed_and_repeated(
    guarded: GuardedLibrary, size: int, far: int, writes: bool
) -> None:
    """By more than a page; whether the tensor is shared, or so small that it is copied."""
    tensor = np.zeros(size, np.float32) if size < SIZE else taken(guarded).reshape(-1)
    tensor[:2] = far, writes
    behind = sums(guarded, "ParseSum", tensor, np.ones(SIZE, np.float32))
    assert behind == [far + writes, SIZE]
    what = "writing" if writes else "reading"
    wanted = rf"crashed \(SIGSEGV\), {what} past the end of output layer layer0 \({4 * size:,} "
    with pytest.raises(LibraryDiedError, match=wanted) as caught:
        sums(guarded, "ParseFar", tensor)
    (folder,) = re.findall(r"headrace replay (\S+)", str(caught.value))
    case, arrays, _ = load_case(Path(folder))
    with pytest.raises(LibraryDiedError, match=wanted):
        repeat(case, arrays, case.library, guard=True, timeout_s=60)
    assert sums(guarded, "ParseSum", tensor) == [far + writes]


def test_memory_is_used_again_when_nobody_has_it(guarded: GuardedLibrary) -> None:
    first = taken(guarded, 2)
    address, view = first.ctypes.data, first[1]
    first.fill(1)
    del first
    second = taken(guarded, 2)
    assert second.ctypes.data != address
    view += 1
    del view
    gc.collect()
    assert taken(guarded, 2).ctypes.data == address
    assert guarded.output_memory.take(np.float32, (5,)) is None, "too small to be worth while"


def test_no_more_than_its_limit() -> None:
    arena = OutputArena(max_bytes=5 * MIN_BYTES)
    held = [arena.take(np.uint8, (MIN_BYTES,)) for _ in range(6)]
    assert [a is not None for a in held] == [True] * 4 + [False] * 2
    for array in held[:4]:
        assert array is not None
        assert array.ctypes.data % 64 == 0
        array.fill(1)
    held.clear()
    assert arena.take(np.uint8, (MIN_BYTES,)) is not None


def test_arrays_outlive_the_library(compile_parser: Compile) -> None:
    library = open_library(compile_parser("shared.cpp"), guard="always")
    assert isinstance(library, GuardedLibrary)
    array = taken(library)
    array.fill(3)
    assert sums(library, "ParseSum", array[0]) == [SIZE * 3]
    fds = len(os.listdir("/proc/self/fd"))
    library.close()
    del library
    gc.collect()
    assert (array == 3).all()
    assert len(os.listdir("/proc/self/fd")) < fds
    array.fill(4)


@pytest.mark.skipif(gpu_present(), reason="with a GPU addresses are not limited")
def test_a_worker_without_room_gets_copies(compile_parser: Compile) -> None:
    library = open_library(
        compile_parser("shared.cpp"), guard="always", guard_options=GuardOptions(memory_mib=96)
    )
    assert isinstance(library, GuardedLibrary)
    parse = library.bbox_parser("ParseSum")
    held = []
    for value in range(1, 8):
        array = library.output_memory.take(np.float32, (4 << 20,))
        assert array is not None
        array.fill(value)
        held.append(array)
        found = parse({"layer": Layer("layer", array)}, NETWORK, PARAMS)
        assert found.boxes[0, 0] == value * (4 << 20)
    assert library.process.deaths == 0
    assert copied(library)
    library.close()


def test_an_engine_writes_there(
    compile_parser: Compile, tmp_path: Path, mean_config: Callable[..., Path]
) -> None:
    config = mean_config(
        custom_lib_path=compile_parser("shared.cpp"),
        parse_bbox_func_name="ParseSum",
        net_scale_factor=1e-5,
        batch_size=2,
    )
    write_same_model(tmp_path / "mean.onnx")
    images = [Frame.from_array(np.full((100, 100, 3), value, np.uint8)) for value in (50, 100)]
    for guard in ("never", "always"):
        with Inferencer.from_config(config, guard=guard, device="cpu") as model:
            for _ in range(3):
                found = [o.left for meta in model.process(images) for o in meta.objects]
                assert found == pytest.approx([15, 30], abs=0.01)
            if guard == "never":
                continue
            assert model.parser is not None
            library = model.parser.library
            assert isinstance(library, GuardedLibrary)
            assert not copied(library)
            gc.collect()
            assert len(library.output_memory.free) == 1, "one memory for all of the runs"


def write_same_model(path: Path) -> None:
    """A model whose output is its input."""
    import onnx
    from onnx import helper

    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", *ITEM])
        for name in ("input", "same")
    ]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["input"], ["same"])], "g", *[[e] for e in ends]
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
