"""What a worker prints arrives, whatever the application's own streams are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.custom.guard import keeper
from headrace.custom.guard.prints import Prints

PARSER = """
import ctypes, os, sys
from headrace import Detections

libc = ctypes.CDLL(None)

def parse(layers, network, params):
    print("by Python")
    libc.printf(b"by C, without a flush\\n")
    os.write(2, b"to standard error\\n")
    os.write(1, b"x" * 300_000 + b"\\n")
    return Detections([], [], [])
"""
CALL = """
import os, sys
import numpy as np
from headrace.custom import open_library
from headrace.meta import DetectionParams, Layer, NetworkInfo

for fd in map(int, sys.argv[2:]):
    os.close(fd)
library = open_library(sys.argv[1], guard="always")
layers = {"a": Layer("a", np.zeros(1, np.float32))}
library.bbox_parser("parse")(layers, NetworkInfo(8, 8, 3), DetectionParams(1, np.zeros(1, "f4")))
library.close()
"""


def copied(prints: Prints, data: bytes) -> None:
    ends = [os.dup(end) for end in prints.ends]
    prints.start()
    for end in ends:
        os.write(end, data)
        os.close(end)
    prints.finish(10)


def test_both_streams_are_copied(capfd: pytest.CaptureFixture[str]) -> None:
    text = "one\ttwo\r\n\u00e4\u65e5\n" * 5000
    copied(Prints(), text.encode())
    printed = capfd.readouterr()
    assert printed.out == printed.err == text


def test_nothing_that_is_printed_steers_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    copied(Prints(), "\x1b]0;title\x07\x7f \x9b2J \u00e4\n".encode())
    assert capfd.readouterr().out == "\\x1b]0;title\\x07\\x7f \\x9b2J \u00e4\n"


def test_a_stream_that_nobody_reads_ends_nothing(tmp_path: Path) -> None:
    kept = os.dup(1)
    here, there = os.pipe()
    os.dup2(there, 1)
    prints = Prints()
    os.dup2(kept, 1)
    for fd in (kept, here, there):
        os.close(fd)
    copied(prints, b"lost\n" * 5000)


def test_one_that_does_not_wait_gets_all(tmp_path: Path) -> None:
    code = "import os, sys, time; time.sleep(0.2); print(len(sys.stdin.buffer.read()))"
    with open(tmp_path / "count", "wb") as file:
        reader = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=file)
        assert reader.stdin is not None
        kept = os.dup(1)
        os.set_blocking(reader.stdin.fileno(), False)
        os.dup2(reader.stdin.fileno(), 1)
        prints = Prints()
        os.dup2(kept, 1)
        os.close(kept)
        reader.stdin.close()
        copied(prints, b"x" * 60_000)
        assert reader.wait(20) == 0
    assert int((tmp_path / "count").read_text()) == 60_000


@pytest.mark.skipif(keeper.can_guard() is not None, reason="no workers here")
@pytest.mark.parametrize("closed", [[], [1], [1, 2]])
@pytest.mark.sampled
def test_all_that_a_parser_prints_arrives(tmp_path: Path, closed: list[int]) -> None:
    parser = tmp_path / "parser.py"
    parser.write_text(PARSER)
    done = subprocess.run(
        [sys.executable, "-c", CALL, str(parser), *map(str, closed)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if 1 not in closed:
        lines = done.stdout.splitlines()
        assert lines[:2] == ["by Python", "by C, without a flush"]
        assert len(lines[2]) == 300_000
    assert (2 in closed) or done.stderr == "to standard error\n"
