"""Fuzz the importers: any bytes give a network or our errors, in little memory, writing nothing.

    pip install atheris
    python tests/fuzz/fuzz_importers.py -max_total_time=600 CORPUS tests/fuzz/seeds/importers

The first byte of an input chooses what the rest is:

    0  a Caffe text and, behind the line `----`, its weights
    1  a UFF file
    2  a Darknet text and, behind the line `----`, its weights
    3  a Caffe text whose weights are made to fit: as many zeros as the layers ask for
    4  a Darknet text with a megabyte of zeros behind a header

The tests replay `seeds/importers` through `one_input`; atheris is needed for fuzzing only.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

if __name__ == "__main__":
    from instrument import instrumented

    with instrumented("headrace"):
        from headrace.errors import ModelError
        from headrace.network.caffe import importer as caffe
        from headrace.network.caffe import lowering as caffe_lowering
        from headrace.network.darknet.importer import network_from_darknet_bytes
        from headrace.network.uff.importer import network_from_uff_bytes
else:
    from headrace.errors import ModelError
    from headrace.network.caffe import importer as caffe
    from headrace.network.caffe import lowering as caffe_lowering
    from headrace.network.darknet.importer import network_from_darknet_bytes
    from headrace.network.uff.importer import network_from_uff_bytes

MODES = 5
MARK = b"\n----\n"
NOWHERE = Path("/nonexistent")
HEADER = struct.pack("<iiiq", 0, 2, 5, 0)
ZEROS = bytes(2**20)
MOST = 2**18  # elements of weights that `fitting_weights` makes up


def check(network) -> None:
    """What was imported can be summed up and written, and ONNX infers the shapes it states."""
    import onnx

    network.summary()
    onnx.checker.check_model(network.to_proto(), full_check=True)


class FittingWeights(caffe_lowering.CaffeLowering):
    """Finds the weights it asks for: zeros of the right shape."""

    def weight(self, index, *shapes, name):
        import numpy as np

        count = 1
        for length in shapes[0]:
            count *= length
        if not 0 < count <= MOST:
            raise self.error("too many weights to make up")
        return np.zeros(shapes[0], np.float32)


def import_caffe(text: bytes, weights: bytes, lowering=caffe_lowering.CaffeLowering) -> None:
    caffe.CaffeLowering = lowering
    try:
        check(
            caffe.network_from_caffe_bytes(
                text, weights, NOWHERE / "f.prototxt", NOWHERE / "f.caffemodel"
            )
        )
    finally:
        caffe.CaffeLowering = caffe_lowering.CaffeLowering


def one_input(data: bytes) -> None:
    """Run one fuzz input; raises if an importer misbehaves."""
    mode, rest = (data[0] % MODES, data[1:]) if data else (0, b"")
    text, _, weights = rest.partition(MARK)
    try:
        if mode == 0:
            import_caffe(text, weights)
        elif mode == 1:
            check(network_from_uff_bytes(rest, NOWHERE / "f.uff"))
        elif mode == 2:
            check(network_from_darknet_bytes(text, weights, NOWHERE / "f.cfg", NOWHERE / "f.w"))
        elif mode == 3:
            import_caffe(text, b"\xa2\x06\x00", FittingWeights)
        else:
            numbers = HEADER + ZEROS
            check(network_from_darknet_bytes(text, numbers, NOWHERE / "f.cfg", NOWHERE / "f.w"))
    except ModelError as error:
        # the last check of a Darknet model is that no zeros are left: go on without them
        if mode == 4 and (left := leftover(str(error))):
            numbers = HEADER + ZEROS[left:]
            check(network_from_darknet_bytes(text, numbers, NOWHERE / "f.cfg", NOWHERE / "f.w"))


def leftover(text: str) -> int:
    word = text.partition(": ")[2].split(" ")[0]
    return int(word) if word.isdigit() and "bytes are left after" in text else 0


if __name__ == "__main__":
    import atheris

    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
