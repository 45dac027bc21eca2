"""UFF files for tests, written by the tests themselves."""

from pathlib import Path

import numpy as np

from headrace.engine import BuildOptions, build
from headrace.network.uff.importer import network_from_uff_bytes
from tests.network.caffe.models import field, varint

PATH = Path("net.uff")
CODES = {"i1": 65544, "i2": 65552, "i4": 65568, "i8": 65600, "f2": 131088, "f4": 131104}
INCREMENT = 2**31 - 1
ORDERS = {
    "NC+": [0, 1, 2, INCREMENT],
    "N+C": [0, 2, INCREMENT, 1],
    "+CK": [2, INCREMENT, 1, 0],
    "+KC": [2, INCREMENT, 0, 1],
    "KC+": [0, 1, 2, INCREMENT],
    "NC": [0, 1],
    "CN": [1, 0],
    "KC": [0, 1],
    "CK": [1, 0],
}


def integers(values):
    return field(1, b"".join(varint(v) for v in values))


def content(value):
    """A Data message."""
    if value is None:
        return b""
    if isinstance(value, bool):
        return varint(5 << 3) + varint(int(value))
    if isinstance(value, int):
        return varint(7 << 3) + varint(value)
    if isinstance(value, float):
        return varint(3 << 3 | 1) + np.float64(value).tobytes()
    if isinstance(value, str):
        return field(1, value.encode())
    if isinstance(value, bytes):
        return field(9, value)
    return field(8, integers(value))


def orders(*names):
    """Reference to the orders of the inputs, as the converter writes it."""
    parts = [field(1, field(1, varint(1 << 3) + varint(-1) + field(2, integers(ORDERS[n]))))
             for n in names]  # fmt: skip
    return Raw(field(104, b"".join(parts)))


class Raw(bytes):
    """A Data message that is already written."""


def node(name, operation, inputs=(), **fields):
    out = field(1, name.encode()) + b"".join(field(2, i.encode()) for i in inputs)
    out += field(3, operation.encode())
    for key, value in fields.items():
        data = bytes(value) if isinstance(value, Raw) else content(value)
        out += field(4, field(1, key.encode()) + field(2, data))
    return field(2, out)


def dtype(code):
    return Raw(varint(101 << 3) + varint(code))


def const(name, array):
    array = np.asarray(array)
    code = CODES[array.dtype.str[1:]]
    reference = Raw(field(100, f"weights_{name}".encode()))
    entry = field(1, f"weights_{name}".encode()) + field(2, content(array.tobytes()))
    made = node(name, "Const", shape=list(array.shape), dtype=dtype(code), values=reference)
    return made, field(5, entry)


def source(shape=(-1, 5, 6, 4), name="x"):
    return node(name, "Input", shape=list(shape), dtype=dtype(CODES["f4"]))


def uff(*parts):
    """A file of nodes; constants bring their data along."""
    nodes, shared = b"", b""
    for part in parts:
        if isinstance(part, tuple):
            nodes, shared = nodes + part[0], shared + part[1]
        else:
            nodes += part
    head = b"\x08\x01\x10\x01" + field(3, field(1, b"tensorflow_extension") + b"\x10\x01")
    return head + field(4, field(1, b"main") + nodes) + shared


def network_of(data, **how):
    return network_from_uff_bytes(data, PATH, **how)


def run(data, x, outputs=(), **how):
    """Outputs by name for a batch in NCHW."""
    network = network_of(data, outputs=outputs, **how)
    network.path = None
    with build(network, BuildOptions(max_batch=8)).open_session() as session:
        return session.run({session.inputs[0].name: np.asarray(x, np.float32)})


def run_node(operation, x, *constants, inputs=(), shape=None, **fields):
    """One operation on `x` (batch, height, width, channels): its output."""
    parts = [
        source(shape or (-1, *x.shape[1:])),
        *(const(f"c{i}", c) for i, c in enumerate(constants)),
    ]
    names = ["x", *(f"c{i}" for i in range(len(constants))), *inputs]
    data = uff(*parts, node("y", operation, names, **fields), node("m", "MarkOutput", ["y"]))
    chw = x.transpose(0, 3, 1, 2)
    (out,) = run(data, chw, input_dims=chw.shape[1:]).values()
    return out
