"""Engine creators compiled against TensorRT's public headers, and those of public libraries.

`HEADRACE_OUTSIDE/tensorrt-headers` has a folder a release, as for test_tensorrt_plugins.py;
`HEADRACE_OUTSIDE/tensorrt-libraries` any number of public `libnvdsinfer_custom_impl_Yolo.so`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from headrace.binary.elf import ElfFile
from headrace.binary.tensorrt_line import served
from headrace.custom.emulated.emulator import why_not_here
from headrace.errors import CustomLibraryError
from headrace.infer.model import library_source, load_or_build
from headrace.network.darknet.importer import network_from_darknet
from headrace.network.network import Network
from headrace.plugins.registry import get_plugin_registry
from tests.infer.model.test_engine_functions_compiled import IMAGE, config, sums_and_one
from tests.outside.test_tensorrt_plugins import build, releases, version
from tests.trt.host.darknet import tiny_yolo

HEAD = 24
"""Channels before the last layers: 3 anchors of 5 numbers and 3 classes."""
MAKER = "NvDsInferYoloCudaEngineGet"


@pytest.mark.slow
def test_creators_of_every_release_build_their_network(
    outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built = 0
    for headers in releases(outside):
        release = version(headers)
        if release == 110000:
            continue  # it has no IPluginV2IOExt
        (folder := tmp_path / headers.name).mkdir()
        library = build(
            headers, release, folder, "compiled/creators.cpp", f'-DNAME="{headers.name}"'
        )
        for function in ["Sums"] + ["Implicit"] * (release < 100000):
            plan = load_or_build(config(folder, library, function))
            with plan.open_session() as session:
                found = session.run({"image": IMAGE})["sums_and_one"]
            np.testing.assert_allclose(found.reshape(1, 1, 2, 3), sums_and_one(), rtol=1e-6)
        built += 1
    assert built >= 12


def heads(network: Network, images: Any, plugins: bool) -> list[Any]:
    """The tensors that go into the last layers, of one image."""
    import onnxruntime

    model = network.to_proto()
    graph = model.graph
    if plugins:
        ends = [n.input for n in graph.node if n.domain == "headrace.plugin"]
        names = list(dict.fromkeys(name for inputs in ends for name in inputs))
    else:
        wide = {i.name for i in graph.initializer if i.dims and i.dims[0] == HEAD}
        names = [n.output[0] for n in graph.node if n.op_type == "Conv" and n.input[1] in wide]
    needed, kept = set(names), []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed |= set(node.input)
    del graph.node[:], graph.output[:]
    graph.node.extend(reversed(kept))
    graph.output.extend(onnx.helper.make_tensor_value_info(n, 1, None) for n in names)
    for one in [i for i in model.opset_import if i.domain == "headrace.plugin"]:
        model.opset_import.remove(one)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return list(session.run(names, {session.get_inputs()[0].name: images}))


@pytest.mark.slow
def test_public_creators_build_the_network_of_the_darknet_files(
    outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = outside / "tensorrt-libraries"
    if not folder.is_dir():
        pytest.skip(f"no folder of public libraries: {folder}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(library_source, "_makes_here", lambda *_: True)  # its layers are not run
    model = tiny_yolo(tmp_path, name="yolov3-tiny", width=64, height=64)
    images = np.random.default_rng(1).random((1, 3, 64, 64)).astype(np.float32)
    ours = heads(network_from_darknet(model.cfg, model.weights), images, False)
    assert len(ours) == 2
    equal = 0
    for library in sorted(folder.rglob("*.so")):
        elf = ElfFile.read(library)
        use = served(elf, MAKER)
        if use is None or use.line is None or MAKER not in elf.exported() or why_not_here(elf)[0]:
            continue
        files = f"model-file={model.weights}\ncustom-network-config={model.cfg}\n"
        files += "num-detected-classes=3\n"
        cfg = config(tmp_path, library, MAKER, more=files)
        try:
            source = library_source.library_source(cfg, [])
        except CustomLibraryError as error:
            if "it needs GLIBC_" in str(error):
                continue
            raise
        assert source is not None
        theirs = heads(source.network(), images, True)
        for mine in ours:
            near = [t for t in theirs if t.shape == mine.shape]
            assert any(np.abs(t - mine).max() < 1e-5 * np.abs(mine).max() for t in near), library
        print(f"{elf.machine_name}, {use.releases}: {library.name}")
        equal += 1
        for creator in get_plugin_registry().all_creators:  # the next has one of that name
            if getattr(creator, "library", "") == str(library):
                get_plugin_registry().deregister_creator(creator)
    assert equal
