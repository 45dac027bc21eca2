"""Each layer against the slow interpreter, then whole networks of the known families in small."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.network.darknet.models import Darknet, net, run
from tests.profiles import examples

X = np.random.default_rng(9).normal(size=(2, 3, 8, 12)).astype(np.float32)
CONV = "[convolutional]\nfilters=8\nsize=3\npad=1\nactivation=leaky\n"


def compare(text, x=X, tolerance=2e-4):
    slow = Darknet(text)
    *_, wanted = slow.run(x)
    found = run(text, slow.flat_numbers(), x)["output"]
    wanted = np.concatenate(slow.rows, 1) if slow.rows else wanted
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    return found


@pytest.mark.parametrize("activation", ["leaky", "mish", "linear", "logistic", "swish", "relu",
                                        "tanh", "relu6"])  # fmt: skip
@pytest.mark.parametrize("norm", [0, 1])
def test_convolution_activations(activation, norm):
    compare(net(f"[convolutional]\nbatch_normalize={norm}\nfilters=4\nsize=1\nstride=1\npad=1\n"
                f"activation={activation}\n"))  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "filters=4\nsize=3\nstride=2\npad=1",
        "filters=4\nsize=3\nstride=1",
        "filters=4\nsize=3\npadding=2",
        "filters=6\nsize=3\npad=1\ngroups=3",
        "filters=4\nsize=2\npad=1\nstride=2",
        "filters=4\nsize=1  # a comment",
        "filters = 4\n size = 5 \npad=1",
    ],
)
def test_convolution_sizes(text):
    compare(net(f"[convolutional]\nbatch_normalize=1\nactivation=linear\n{text}\n"))


def test_convolution_defaults_to_logistic():
    assert compare(net("[convolutional]\nfilters=2\nsize=1\n")).min() > 0


@settings(max_examples=examples(40))
@given(
    size=st.integers(1, 5),
    stride=st.integers(1, 4),
    padding=st.none() | st.integers(0, 4),
    height=st.integers(1, 9),
    width=st.integers(1, 9),
    kind=st.sampled_from(["maxpool", "local_avgpool"]),
)
def test_pooling(size, stride, padding, height, width, kind):
    pad = size - 1 if padding is None else padding
    if min(height, width) + pad < size or pad - pad // 2 >= size:
        return
    text = f"[{kind}]\nsize={size}\nstride={stride}\n"
    text += "" if padding is None else f"padding={padding}\n"
    x = np.random.default_rng(height).normal(size=(2, 3, height, width)).astype(np.float32) - 2
    compare(net(text, 3, height, width), x)


@pytest.mark.parametrize(
    "text",
    [
        "[avgpool]",
        "[upsample]\nstride=2",
        "[upsample]\nstride=3\nscale=0.5",
        "[dropout]\nprobability=.5",
        CONV + "[route]\nlayers=-1",
        CONV + CONV + "[route]\nlayers=-1,0",
        CONV + CONV + "[route]\nlayers=1,-2\ngroups=2\ngroup_id=1",
        CONV + CONV + "[shortcut]\nfrom=-2\nactivation=relu",
        CONV + CONV + CONV + "[shortcut]\nfrom=-2,0\nactivation=linear",
        CONV + "[reorg]\nstride=2",
        CONV + "[reorg3d]\nstride=2",
        CONV + CONV + "[sam]\nfrom=-2",
        CONV + "[avgpool]\n" + "[convolutional]\nfilters=8\n[scale_channels]\nfrom=0",
        "[implicit_add]\nfilters=8\n[implicit_mul]\nfilters=8\n"
        "[convolutional]\nfilters=8\nactivation=linear\n",
        "[connected]\noutput=5\nactivation=relu",
        "[connected]\noutput=5\nbatch_normalize=1\n[softmax]",
        "[connected]\noutput=6\nactivation=linear\n[softmax]\ngroups=2\ntemperature=2",
        CONV + "[avgpool]\n[softmax]\ngroups=1",
    ],
)
def test_other_layers(text):
    if text.startswith("[implicit_add]"):
        # the constants come first, so the image is passed on by a route to a layer before them
        text = CONV + text.split("[convolutional]")[0]
        text += "[route]\nlayers=0\n[shift_channels]\nfrom=1\n[control_channels]\nfrom=2\n"
    compare(net(text))


HEAD = "[convolutional]\nsize=1\nfilters={}\nactivation={}\n"
YOLO = "[yolo]\nmask={}\nanchors=10,14, 23,27, 37,58, 81,82\nclasses=3\nnum=4\n{}\n"


@pytest.mark.parametrize(
    ("activation", "more"),
    [
        ("linear", ""),
        ("linear", "scale_x_y=1.05"),
        ("logistic", "new_coords=1\nscale_x_y=2.0"),
        ("linear", "ignore_thresh=.7\ntruth_thresh=1\nrandom=1"),
    ],
)
def test_yolo_heads(activation, more):
    text = CONV + HEAD.format(16, activation) + YOLO.format("1,3", more)
    found = compare(net(text))
    assert found.shape == (2, 2 * 8 * 12, 6)


def test_region_head():
    anchors = "[region]\nanchors=1.1,1.2, 3,4.5\nclasses=4\ncoords=4\nnum=2\nsoftmax=1\n"
    compare(net(CONV + HEAD.format(18, "linear") + anchors))


@pytest.mark.slow
def test_tiny_yolo_with_two_heads():
    down = "[maxpool]\nsize=2\nstride=2\n"
    same = "[maxpool]\nsize=2\nstride=1\n"
    norm = CONV.replace("]\n", "]\nbatch_normalize=1\n", 1)
    text = norm + down + norm + down + norm + same + norm  # 0 to 6
    text += HEAD.format(16, "linear") + YOLO.format("2,3", "")  # 7, 8
    text += "[route]\nlayers=-3\n" + norm + "[upsample]\nstride=2\n[route]\nlayers=-1,2\n" + norm
    text += HEAD.format(16, "linear") + YOLO.format("0,1", "scale_x_y=1.1")
    found = compare(net(text, 3, 32, 48), np.random.default_rng(1).random((2, 3, 32, 48)))
    assert found.shape == (2, 2 * (8 * 12 + 16 * 24), 6)
    slow = Darknet(net(text, 3, 32, 48))
    outputs = slow.run(np.zeros((1, 3, 32, 48)))
    raw = run(net(text, 3, 32, 48), slow.flat_numbers(), np.zeros((1, 3, 32, 48)), decode=False)
    assert sorted(raw) == ["yolo_15", "yolo_8"]
    np.testing.assert_allclose(raw["yolo_8"], outputs[7], atol=1e-4)


def test_yolo_v2_with_a_passthrough():
    norm = CONV.replace("]\n", "]\nbatch_normalize=1\n", 1)
    text = norm + "[maxpool]\nsize=2\nstride=2\n" + norm
    text += "[route]\nlayers=0\n[convolutional]\nfilters=4\nsize=1\nactivation=leaky\n"
    text += "[reorg]\nstride=2\n[route]\nlayers=-1,-4\n" + HEAD.format(18, "linear")
    text += "[region]\nanchors=0.5,0.7,1.5,2.5\nclasses=4\nnum=2\nsoftmax=1\n"
    compare(net(text))
