"""Files as a whole: headers, sizes, names, and what is refused."""

import numpy as np
import pytest

from headrace.errors import ModelError
from headrace.network.darknet.importer import network_from_darknet
from tests.network.darknet.models import Darknet, header, net, network_of, run

CONV = "[convolutional]\nfilters=2\nsize=1\nactivation=linear\n"
NUMBERS = np.arange(8, dtype=np.float32)  # two biases, six weights
X = np.random.default_rng(0).normal(size=(2, 3, 8, 12)).astype(np.float32)
WANTED = np.einsum("oc,nchw->nohw", NUMBERS[2:].reshape(2, 3), X) + NUMBERS[:2, None, None]


@pytest.mark.parametrize(
    "head",
    [header(0, 1, 0), header(0, 2, 0), header(0, 2, 5, 2**40), header(1, 0, 0)],
)
def test_versions_of_the_header(head):
    found = run(net(CONV), NUMBERS, X, head=head)["output"]
    np.testing.assert_allclose(found, WANTED, rtol=1e-4, atol=1e-4)


def test_transposed_matrices_of_very_old_files():
    text = net("[connected]\noutput=2\nactivation=linear\n", 3, 1, 1)
    found = run(text, NUMBERS, X[:, :, :1, :1], head=header(2000, 0))["output"]
    wanted = X[:, :, 0, 0] @ NUMBERS[2:].reshape(3, 2) + NUMBERS[:2]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_shapes_names_and_dims():
    network = network_of(net(CONV), NUMBERS)
    assert [str(s) for s in network.inputs] == ["input float32[batch, 3, 8, 12]"]
    assert [str(s) for s in network.outputs] == ["output float32[batch, 2, 8, 12]"]
    network = network_of(net(CONV), NUMBERS, input_dims=(3, 16, 20))
    assert network.outputs[0].shape == ("batch", 2, 16, 20)


def test_weights_that_are_missing_or_left():
    words = r"net.cfg:6, layer 0 \[convolutional\]: the weights need 24 bytes \(2x3x1x1\).*20 left"
    with pytest.raises(ModelError, match=words + ", 4 are missing"):
        network_of(net(CONV), NUMBERS[:-1])
    with pytest.raises(ModelError, match=r"the biases need 8 bytes"):
        network_of(net(CONV), NUMBERS[:1])
    with pytest.raises(ModelError, match=r"(?s)12 bytes are left after the last layer \(0 \[conv.*"
                                         r"expected 52 bytes.*of one model"):  # fmt: skip
        network_of(net(CONV), np.zeros(11))
    with pytest.raises(ModelError, match="too few for a header"):
        network_of(net(CONV), head=b"\x00\x00\x00\x00\x02")
    with pytest.raises(ModelError, match="version"):
        network_of(net(CONV), head=b"\xff" * 64)


REFUSED = [
    ("", "is not there|cannot|begin"),
    ("[net]\nwidth=4\nheight=4\n", "there are no layers"),
    ("width=4\n", "does not belong here"),
    ("[net]\nwidth 4\n", "'width4' does not belong"),
    ("[net\n", "is not a section"),
    ("[convolutional]\n", r"begin with \[net\]"),
    ("[net]\nwidth=4\n" + CONV, r"net.cfg:1, \[net\]: the input is 3 x 0 x 4"),
    ("[net]\nwidth=a\n" + CONV, r"net.cfg:2, \[net\]: width=a"),
    (net("[convolution]\n"), r"(?s)layer 0 \[convolution\].*not known.*did you mean"),
    (net("[crnn]\n"), "is not known"),
    (net("[gaussian_yolo]\n"), "is not known"),
    (net("[dropout]\n[shortcut]\nfrom=0\nactivation=gelu2\n"), "activation=gelu2"),
    (net("[convolutional]\nfilters=2\ngroups=2\n"), "divisible by groups"),
    (net("[convolutional]\nfilters=x\n"), "filters=x"),
    (net("[convolutional]\nfilters=2\nsize=99\n"), "does not fit"),
    (net("[convolutional]\nfilters=2\nxnor=1\n"), "xnor is not supported"),
    (net("[convolutional]\nfilters=2000000000\n"), "bytes"),
    (net("[maxpool]\nsize=2\nmaxpool_depth=1\n"), "maxpool_depth is not supported"),
    (net("[maxpool]\nsize=2\npadding=9\n"), "windows that fit"),
    (net("[route]\nlayers=-1\n"), "there is no layer -1 before"),
    (net("[dropout]\n[route]\nlayers=1\n"), "there is no layer 1 before"),
    (net("[dropout]\n[route]\n"), "layers is not given"),
    (net("[dropout]\n[upsample]\n[route]\nlayers=0,1\n"), "different sizes: 8 x 12, 16 x 24"),
    (net("[dropout]\n[route]\nlayers=0\ngroups=2\n"), "2 groups of 3 channels"),
    (net("[dropout]\n[upsample]\n[shortcut]\nfrom=0\n"), "equal shapes"),
    (net("[dropout]\n[shortcut]\nfrom=0\nweights_type=per_channel\n"), "weighted"),
    (net("[reorg]\nstride=5\n"), "does not divide"),
    (net("[upsample]\nstride=4000\n[upsample]\nstride=4000\n"), "elements"),
    (net("[connected]\noutput=2\n[maxpool]\n").replace("output=2", "output=1"), "biases|height"),
    (net("[yolo]\nclasses=2\nanchors=1,2\n"), "3 channels for 1 anchors and 2 classes"),
    (net("[yolo]\nclasses=2\nanchors=1,2\nmask=3\n"), "mask=3"),
    (net("[yolo]\nclasses=2\nanchors=1,a\n"), "anchors=1,a"),
    (net("[yolo]\nclasses=2\nnum=3\nanchors=1,2\n"), "2 numbers for 3 anchors"),
    (net("[region]\nclasses=2\nanchors=1,2\ntree=x\n"), "tree"),
    (net("[implicit_add]\nfilters=1\n"), "bytes|does not depend"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_is_refused(text, words):
    with pytest.raises(ModelError, match=words):
        network_of(text)


def test_heads_give_nothing_on():
    text = net("[convolutional]\nfilters=7\n[yolo]\nclasses=2\nanchors=1,2\n[route]\nlayers=-1\n")
    slow = Darknet(net("[convolutional]\nfilters=7\n"))
    slow.run(X)
    with pytest.raises(ModelError, match="layer 1 is a head and gives nothing on"):
        network_of(text, slow.flat_numbers())


def test_files(tmp_path):
    cfg, weights = tmp_path / "n.cfg", tmp_path / "n.weights"
    cfg.write_text(net(CONV))
    weights.write_bytes(header() + NUMBERS.tobytes())
    network = network_from_darknet(str(cfg), weights)
    assert network.path == weights
    assert network.made_from == {"custom-network-config": cfg}
    with pytest.raises(ModelError, match=r"zero bytes|looks like"):
        network_from_darknet(weights, weights)
    with pytest.raises(ModelError, match="this is a Darknet network text"):
        network_from_darknet(cfg, cfg)
    with pytest.raises(ModelError, match="cannot be read"):
        network_from_darknet(cfg, tmp_path / "none")
