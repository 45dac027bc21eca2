"""Caffe models for tests: text and weights written by the tests themselves."""

import struct
from pathlib import Path

import numpy as np

from headrace.engine import BuildOptions, build
from headrace.network.caffe.importer import network_from_caffe_bytes

TEXT, WEIGHTS = Path("net.prototxt"), Path("net.caffemodel")


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def blob(array, *, legacy=False, packed=True, double=False):
    """BlobProto of an array; legacy: four axes as num, channels, height, width."""
    array = np.asarray(array)
    flat = array.astype("<f8" if double else "<f4").ravel()
    number = 8 if double else 5
    if packed:
        out = field(number, flat.tobytes())
    else:
        out = b"".join(varint(number << 3 | 5) + struct.pack("<f", v) for v in flat)
    if legacy:
        dims = (1,) * (4 - array.ndim) + array.shape
        head = b"".join(varint(i << 3) + varint(d) for i, d in enumerate(dims, 1))
        return head + out
    return out + field(7, field(1, b"".join(varint(d) for d in array.shape)))


def caffemodel(layers, *, v1=False, **how):
    """NetParameter with the blobs of each layer: name -> arrays."""
    number, name_at, blobs_at = (2, 4, 6) if v1 else (100, 1, 7)
    out = field(1, b"test")
    for name, arrays in layers.items():
        inner = field(name_at, name.encode())
        inner += b"".join(field(blobs_at, blob(a, **how)) for a in arrays)
        out += field(number, inner)
    return out


def text_of(layers, shape=(1, 3, 6, 7)):
    dims = " ".join(f"dim: {d}" for d in shape)
    return f'name: "t"\ninput: "data"\ninput_shape {{ {dims} }}\n{layers}'


def network_of(text, weights=None, outputs=(), **more):
    data = weights if isinstance(weights, bytes) else caffemodel(weights or {"none": []})
    return network_from_caffe_bytes(text.encode(), data, TEXT, WEIGHTS, outputs=outputs, **more)


def run(text, x, weights=None, outputs=(), **more):
    """Outputs of a network by name; `x` has any batch."""
    network = network_of(text, weights, outputs, **more)
    network.path = None  # the files do not exist
    plan = build(network, BuildOptions(max_batch=8))
    with plan.open_session() as session:
        return session.run({session.inputs[0].name: np.asarray(x, np.float32)})


def layer(kind, parameters="", *, bottom="data", top="out", name="layer"):
    bottoms = " ".join(f'bottom: "{b}"' for b in bottom.split())
    tops = " ".join(f'top: "{t}"' for t in top.split())
    return f'layer {{ name: "{name}" type: "{kind}" {bottoms} {tops} {parameters} }}\n'


def run_layer(kind, parameters, x, blobs=(), **more):
    """One layer on `x` (batch, ...): its only output."""
    text = text_of(layer(kind, parameters), (1, *x.shape[1:]))
    (out,) = run(text, x, {"layer": list(blobs)}, **more).values()
    return out
