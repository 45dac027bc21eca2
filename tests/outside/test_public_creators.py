"""Engine creators of public libraries make the networks that headrace makes of the same files.

They are found by the creator's name in the folders of `HEADRACE_OUTSIDE`; those of AArch64 run
under the emulator.
"""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import onnx
import pytest

from headrace.binary.elf import ElfFile, version_key
from headrace.binary.tensorrt_line import served
from headrace.custom.emulated.emulator import why_not_here
from headrace.infer.model import library_source
from headrace.network.darknet.importer import network_from_darknet
from headrace.network.network import Network
from headrace.network.onnx_file import network_from_onnx
from headrace.plugins.registry import get_plugin_registry
from tests.infer.model.test_engine_functions_compiled import config
from tests.outside.darknet_layers import layers
from tests.trt.host.darknet import DOWN, HEAD, YOLO, tiny_yolo, written

MAKER = "NvDsInferYoloCudaEngineGet"
SIDE = 64
POOL = "[maxpool]\nsize={}\nstride=1\n"
ROUTE = "[route]\nlayers={}\n"


def conv(filters: int, activation: str, size: int = 3, stride: int = 1, groups: int = 1) -> str:
    return (
        f"[convolutional]\nbatch_normalize=1\nfilters={filters}\nsize={size}\n"
        f"stride={stride}\ngroups={groups}\npad=1\nactivation={activation}\n"
    )


V4 = (
    conv(6, "mish") + conv(8, "swish", stride=2) + ROUTE.format("-1\ngroups=2\ngroup_id=1")
    + conv(4, "leaky") + conv(4, "logistic", size=1) + "[shortcut]\nfrom=-2\nactivation=linear\n"
    + ROUTE.format("-1,-5") + DOWN + POOL.format(5) + ROUTE.format(-2) + POOL.format(9)
    + ROUTE.format("-1,-3,-4") + conv(12, "relu", groups=3) + HEAD + YOLO.format("3,4,5")
    + ROUTE.format(-3) + conv(4, "mish", size=1) + "[upsample]\nstride=2\n"
    + ROUTE.format("-1,1") + conv(6, "leaky") + HEAD + YOLO.format("0,1,2")
)  # fmt: skip
"""What v4 has beyond v3: other activations, groups, sums, pooling side by side."""

ONNX = """<ir_version: 8, opset_import: ["" : 13]>
yolo (float[N,3,32,32] input)
=> (float[N,256,4] boxes, float[N,256,1] scores, float[N,256,1] classes)
<int64[3] shape = {0, 8, 256}, int64[1] zero = {0}, int64[1] four = {4}, int64[1] eight = {8},
 int64[1] last = {2}>
{
  c = Conv <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (input, weight, bias)
  n = BatchNormalization <epsilon = 0.001> (c, scale, bias, mean, variance)
  s = Sigmoid (n)
  m = Mul (n, s)
  p = MaxPool <kernel_shape = [5, 5], pads = [2, 2, 2, 2], strides = [1, 1]> (m)
  a = Add (p, m)
  f = Reshape (a, shape)
  t = Transpose <perm = [0, 2, 1]> (f)
  boxes = Slice (t, zero, four, last)
  r = Slice (t, four, eight, last)
  scores = ReduceMax <axes = [2], keepdims = 1> (r)
  i = ArgMax <axis = 2, keepdims = 1> (r)
  classes = Cast <to = 1> (i)
}"""


def onnx_model() -> onnx.ModelProto:
    model = onnx.parser.parse_model(ONNX)
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    rng = np.random.default_rng(3)
    for name in ("weight", "bias", "scale", "mean", "variance"):
        values = rng.random((8, 3, 3, 3) if name == "weight" else 8).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    return model


@pytest.fixture
def public(outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Libraries with the creator that can be loaded here, each content once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(library_source, "_makes_here", lambda *_: True)  # its layers are not run
    found: dict[bytes, Path] = {}
    glibc = version_key(f"GLIBC_{platform.libc_ver()[1]}")
    for path in sorted(outside.glob("*/**/*.so")):
        elf = ElfFile.read(path)
        use = served(elf, MAKER)
        if use is None or use.line is None or MAKER not in elf.exported() or why_not_here(elf)[0]:
            continue
        if max(map(version_key, elf.version_needs["libc.so.6"])) <= glibc:
            found.setdefault(elf.data, path)
    if not found:
        pytest.skip(f"no public library with {MAKER} in {outside}")
    return list(found.values())


def made(folder: Path, library: Path, files: str) -> Network:
    """The network that the creator of a library makes of a model."""
    cfg = config(folder, library, MAKER, more=f"{files}num-detected-classes=3\n")
    source = library_source.library_source(cfg, [])
    assert source is not None
    network = source.network()
    for creator in get_plugin_registry().all_creators:  # the next has one of that name
        if getattr(creator, "library", "") == str(library):
            get_plugin_registry().deregister_creator(creator)
    elf = ElfFile.read(library)
    print(f"{elf.machine_name}, {served(elf, MAKER).releases}: {library.name}")
    return network


@pytest.mark.slow
@pytest.mark.parametrize("name", ["yolov3-tiny", "yolov4"])
def test_the_network_of_darknet_files(public: list[Path], tmp_path: Path, name: str) -> None:
    image = np.random.default_rng(1).random((1, 3, SIDE, SIDE)).astype(np.float32)
    if name == "yolov4":
        model = written(tmp_path, name, V4, image, 5)
        public = [path for path in public if b"mish" in path.read_bytes()]
    else:
        model = tiny_yolo(tmp_path, name=name, width=SIDE, height=SIDE)
    ours = layers(network_from_darknet(model.cfg, model.weights, decode=False), image)
    assert len(ours) >= 19
    assert public
    files = f"model-file={model.weights}\ncustom-network-config={model.cfg}\n"
    for library in public:
        theirs = layers(made(tmp_path, library, files), image)
        for mine, found in zip(ours, theirs, strict=True):
            label = f"{library.name}: {mine.operator} of layer {mine.number}"
            assert found.described() == mine.described(), label
            assert found.number - mine.number in (0, 1), label  # theirs may count [net]
            for one, other in zip(mine.arrays(), found.arrays(), strict=True):
                assert one.shape == other.shape, label
                assert np.abs(one - other).max() < 1e-5 * np.abs(one).max(), label


def ends(network: Network) -> list[tuple[object, ...]]:
    """Inputs and outputs; an axis that is free has no name in TensorRT."""
    specs = [*network.inputs, *network.outputs]
    return [(s.name, s.dtype, *(d for d in s.shape if isinstance(d, int))) for s in specs]


@pytest.mark.slow
def test_the_network_of_an_onnx_file(public: list[Path], tmp_path: Path) -> None:
    onnx.save(onnx_model(), path := tmp_path / "model.onnx")
    model = network_from_onnx(path)
    ours = model.to_proto().graph
    public = [p for p in public if b"createNvOnnxParser_INTERNAL" in p.read_bytes()]
    assert public
    for library in public:
        network = made(tmp_path, library, f"onnx-file={path}\n")
        theirs = network.to_proto().graph
        assert list(theirs.node) == list(ours.node), library
        assert ends(network) == ends(model), library
        mine, found = (
            {i.name: onnx.numpy_helper.to_array(i) for i in g.initializer} for g in (ours, theirs)
        )
        assert mine.keys() == found.keys(), library
        for key, values in mine.items():
            np.testing.assert_array_equal(found[key], values, strict=True)
