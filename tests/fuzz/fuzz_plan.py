"""Fuzz the readers behind `load_or_build`: any bytes give a plan, a network, or our errors.

    pip install atheris
    python tests/fuzz/fuzz_plan.py -max_total_time=600 CORPUS tests/fuzz/seeds/plan

The first byte of an input chooses what the rest is:

    0  a plan file
    1  a plan file whose header hash and sizes are made to fit (past the checks of the outer layer)
    2  the header's JSON alone, sealed into a plan with one empty blob
    3  an ONNX file

The tests replay `seeds/plan` through `one_input`; atheris is needed for fuzzing only.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from pathlib import Path

if __name__ == "__main__":
    from instrument import instrumented

    with instrumented("headrace"):
        from headrace._core.formats.sniff import PLAN_MAGIC
        from headrace.engine.plan import Plan
        from headrace.engine.plan_prefix import FORMAT_VERSION
        from headrace.errors import EngineError, ModelError
        from headrace.network.onnx_file import network_from_onnx_bytes
else:
    from headrace._core.formats.sniff import PLAN_MAGIC
    from headrace.engine.plan import Plan
    from headrace.engine.plan_prefix import FORMAT_VERSION
    from headrace.errors import EngineError, ModelError
    from headrace.network.onnx_file import network_from_onnx_bytes

PREFIX = struct.Struct("<8sIIQ32s")
MODES = 4


def seal(header: bytes, blobs: bytes) -> bytes:
    """A plan file of these parts, with sizes and header hash that fit."""
    size = PREFIX.size + len(header) + len(blobs)
    digest = hashlib.sha256(header).digest()
    return PREFIX.pack(PLAN_MAGIC, FORMAT_VERSION, len(header), size, digest) + header + blobs


def fitted(data: bytes) -> bytes:
    """`data` read as a plan file, its prefix and the hashes in its header put right."""
    if len(data) < PREFIX.size:
        return data
    size = PREFIX.unpack_from(data)[2]
    header, blobs = data[PREFIX.size :][:size], data[PREFIX.size :][size:]
    try:
        parsed = json.loads(header)
        at = 0
        for record in parsed["blobs"]:
            record["sha256"] = hashlib.sha256(blobs[at : at + record["size_bytes"]]).hexdigest()
            at += record["size_bytes"]
        header = json.dumps(parsed).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return seal(header, blobs)


def read_plan(data: bytes) -> None:
    """Nothing but EngineError; what is read can be described and written as it was."""
    try:
        plan = Plan.from_bytes(data)
    except EngineError:
        return
    plan.describe()
    again = Plan.from_bytes(b"".join(plan.to_chunks()))
    assert again.header == plan.header
    assert again.blobs == plan.blobs


def read_network(data: bytes) -> None:
    """Nothing but ModelError; what is read can be summed up and written."""
    try:
        network = network_from_onnx_bytes(data, Path("/nonexistent/fuzz.onnx"))
        network.summary()
        network.to_proto()
    except ModelError:
        return


def one_input(data: bytes) -> None:
    """Run one fuzz input; raises if a reader misbehaves."""
    mode, rest = (data[0] % MODES, data[1:]) if data else (0, b"")
    if mode == 0:
        read_plan(rest)
    elif mode == 1:
        read_plan(fitted(rest))
    elif mode == 2:
        read_plan(seal(rest, b""))
    else:
        read_network(rest)


if __name__ == "__main__":
    import atheris

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
