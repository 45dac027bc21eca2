"""Programs that are no Python behind `headrace exec`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.gstreamer.elements.programs import is_program
from tests.warm import started_anew

SOURCE = """#include <stdio.h>
int main(int count, char **words) { printf("%d %s\\n", count, words[1]); return 3; }
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "main.c").write_text(SOURCE)
    subprocess.run(["gcc", tmp_path / "main.c", "-o", tmp_path / "program"], check=True)
    return tmp_path / "program"


def test_a_compiled_program_is_run_and_not_read_as_python(program: Path) -> None:
    done = started_anew("exec", program, "clip.mp4")
    assert (done.returncode, done.stdout) == (3, "2 clip.mp4\n")
    program.chmod(0o644)
    done = started_anew("exec", program)
    assert done.returncode == 1
    assert "may not be executed" in done.stderr
    assert f"chmod +x {program}" in done.stderr


def test_options_of_scripts_are_not_for_programs(program: Path, tmp_path: Path) -> None:
    done = started_anew("exec", "--report", tmp_path / "out.html", program)
    assert done.returncode == 2
    assert "--report is for scripts in Python" in done.stderr


def test_a_program_of_tensorrt_is_sent_to_the_compiler(tmp_path: Path) -> None:
    for name, text in (("nv.c", "int nv(void) { return 1; }"), ("main.c", "int nv(void);"
                       "int main(void) { return nv(); }")):  # fmt: skip
        (tmp_path / name).write_text(text)
    library = tmp_path / "libnvinfer.so.10"
    subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{library.name}", tmp_path / "nv.c",
                    "-o", library], check=True)  # fmt: skip
    program = tmp_path / "program"
    subprocess.run(["gcc", tmp_path / "main.c", library, "-o", program], check=True)
    done = started_anew("exec", program)
    assert done.returncode == 1
    assert "linked against libnvinfer.so.10" in done.stderr
    assert "headrace compile --exe" in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"#!/bin/sh\necho a\n", True),
        (b"#!/usr/bin/env python3\nprint(1)\n", False),
        (b"import tensorrt\n", False),
        (b"", False),
    ],
)
def test_the_first_line_tells(tmp_path: Path, text: bytes, expected: bool) -> None:
    (tmp_path / "file").write_bytes(text)
    assert is_program(tmp_path / "file") == expected
    assert not is_program(tmp_path / "missing")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.engine").write_bytes(b"ptrt\0\0\0\1")
    with pytest.raises(HeadraceError, match="neither Python source nor a program"):
        is_program(tmp_path / "model.engine")


@pytest.mark.slow
def test_a_script_of_a_shell_finds_the_elements(gst: object, tmp_path: Path) -> None:
    if shutil.which("gst-inspect-1.0") is None:
        pytest.skip("GStreamer's tools are not installed")
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\nexec gst-inspect-1.0 nvstreammux\n")
    script.chmod(0o755)
    done = started_anew("exec", script)
    assert done.returncode == 0, done.stderr
    assert "batched-push-timeout" in done.stdout
