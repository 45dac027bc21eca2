"""Mapped files stay what they are, whoever gives their pages back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headrace._core.mapped import give_back, mapped, read_once


def test_what_was_given_back_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    data = np.random.default_rng(0).integers(0, 256, 1 << 20, np.uint8)
    path.write_bytes(data.tobytes())
    with open(path, "rb") as file:
        view = mapped(file.fileno(), 100, data.size - 100)
    with read_once(view):
        for _ in range(20):
            give_back(view)
            np.testing.assert_array_equal(np.frombuffer(view, np.uint8), data[100:])
    np.testing.assert_array_equal(np.frombuffer(view, np.uint8), data[100:])
    own = memoryview(bytearray(b"kept"))
    with read_once(own):
        give_back(own)
    assert bytes(own) == b"kept"
