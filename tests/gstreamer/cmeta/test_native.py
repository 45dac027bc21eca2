"""C applications over the elements: their probes read and change what Python's elements made."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.custom.compile.build_library import compile_library
from headrace.custom.compile.toolchain import include_dir
from headrace.gstreamer.cmeta.native import library_path
from headrace.gstreamer.pyds.meta import items
from tests.cli.processes import usual_signals
from tests.gstreamer.cmeta.conftest import PROGRAMS, Application
from tests.gstreamer.conftest import Run, video

ROOT = Path(__file__).parents[3]


def counts(play: Run, detector: Path) -> list[int]:
    """How many objects the same pipeline has in Python, a frame."""
    from headrace.gstreamer import pyds

    def probe(buffer: Any) -> int:
        batch = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
        assert batch is not None
        return len(items(batch.frame_meta_list.data, "obj_meta_list"))

    ran = play(
        f"{video(12)} ! mux.sink_0 nvstreammux name=mux batch-size=1 width=640 height=384 ! "
        f"nvinfer config-file-path={detector} ! fakesink name=end",
        end=probe,
    )
    assert ran.errors == []
    return ran.seen["end"]


def test_a_probe_in_c_reads_and_changes_metadata(
    application: Application, clip: Path, detector: Path, play: Run
) -> None:
    done = application("walk.c", clip, detector, 11)
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    python = counts(play, detector)
    assert len(lines) >= 11
    assert max(python) > 1
    for number, (line, count) in enumerate(zip(lines, python, strict=False)):
        words = dict(word.split("=", 1) for word in line.split()[2:4])
        assert line.startswith(f"{number} "), line
        assert words == {"objects": str(count + 1), "added": "1"}
        assert line.endswith(f"drawn=1 note=frame {number}")
    assert last == f"copies={len(lines)} releases={2 * len(lines)}"


def test_the_library_is_where_programs_look_for_it() -> None:
    folder = library_path().parent
    assert library_path().is_file()
    names = {path.name for path in (folder / "run").iterdir()}
    assert {"libnvdsgst_meta.so", "libnvds_meta.so", "libnvbufsurface.so"} <= names


@pytest.mark.slow
def test_pools_lists_and_copies_are_right_under_address_sanitizer(gst: Any, tmp_path: Path) -> None:
    native = ROOT / "native"
    sources = [
        *sorted((native / "deepstream").glob("*.cpp")),
        *(native / "src" / "cluster" / f"{name}.cpp" for name in ("dbscan", "box_index")),
    ]
    numbers = tmp_path / "cluster" / "numbers.h"
    numbers.parent.mkdir()
    subprocess.run([sys.executable, ROOT / "scripts" / "native_numbers.py", numbers], check=True)
    program = tmp_path / "pools"
    command = ["g++", "-std=c++17", "-O1", "-g1", "-fsanitize=address,undefined",
               "-fno-sanitize=vptr", f"-I{include_dir()}", f"-I{native / 'src'}", f"-I{tmp_path}",
               *sources, PROGRAMS / "pools.cpp",
               "-ldl", "-o", program]  # fmt: skip
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("right\n", "", 0)


@pytest.mark.slow
def test_images_of_a_batch_are_read_and_written_in_c(application: Application, clip: Path) -> None:
    done = application("images.c", clip)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "eos"
    frames = [lines[start : start + 5] for start in range(0, len(lines) - 1, 5)]
    assert len(frames) >= 4
    luma = round(16 + 219 * 0.299)
    for planar, mapped, bgr, nv12, end in frames:
        assert planar == "mux format=6 planes=2 chroma=160x96 pitch=320 batch=2 filled=1"
        assert mapped == (
            "map size=72 batch=2 filled=1 memory=3 320x192 format=19 pitch=1280 data=245760"
        )
        assert bgr == "bgr 0 0 255 planes=1"
        assert nv12 == f"nv12 {luma} {luma} {luma} planes=2"
        assert end == "end 255 0 0"


@pytest.mark.slow
def test_recordings_and_images_of_objects_are_made_for_c(
    application: Application, clip: Path, detector: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.chdir(folder)
    done = application("services.c", clip, detector, folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == ["create 0", "broker (nil)", "link 1", "batch size 1 3"]
    assert "'libmine.so' is no known adaptor" in done.stderr
    assert {"start 0 second 2", "stop 0", "eos", "destroy 0"} <= set(lines)
    (video,) = folder.glob("event_*.mkv")
    assert f"recorded {video.name} session=0 640x384 video=1 data=mine" in lines
    assert "jpeg ffd8 of many bytes" in lines
    assert "not encoded" not in lines
    jpegs = list(folder.glob("object_*.jpg"))
    assert jpegs
    assert all(path.read_bytes()[:2] == b"\xff\xd8" for path in jpegs)


@pytest.mark.slow
def test_control_c_ends_a_program_in_c(needs_headers: None, gst: Any, tmp_path: Path) -> None:
    """The Python of GStreamer's loader takes the signal, which nobody waits for in C."""
    compile_library([PROGRAMS / "waits.c"], tmp_path / "waits", program=True)
    program = subprocess.Popen(
        [sys.executable, "-m", "headrace", "exec", tmp_path / "waits"],
        stdout=subprocess.PIPE, text=True,
        preexec_fn=usual_signals,
    )  # fmt: skip
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    program.send_signal(signal.SIGINT)
    try:
        assert program.wait(timeout=20) == -signal.SIGINT
    finally:
        program.kill()
        program.stdout.close()


@pytest.mark.slow
def test_headers_of_metadata_networks_and_logs_stand_together(gst: Any, tmp_path: Path) -> None:
    source = tmp_path / "both.cpp"
    source.write_text(
        '#include "gstnvdsmeta.h"\n#include "NvInfer.h"\n#include "NvOnnxParser.h"\n'
        '#include "nvds_logger.h"\nint levels[] = {LOG_ERR, LOG_DEBUG};\n'
        "int main() { return sizeof(NvDsObjectMeta) == sizeof(nvinfer1::Dims) + levels[0]; }\n"
    )
    assert compile_library([source], tmp_path / "both", program=True).library.is_file()
