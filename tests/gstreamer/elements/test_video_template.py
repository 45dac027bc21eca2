"""nvdsvideotemplate runs libraries of users on the images of batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.custom.compile.build_library import compile_library
from headrace.gstreamer import pyds
from tests.gstreamer.cmeta.conftest import needs_headers  # noqa: F401
from tests.gstreamer.conftest import Run, video

SOURCE = Path(__file__).with_name("invert.cpp")
MUX = "m.sink_0 nvstreammux name=m batch-size=1 width=320 height=192"


@pytest.fixture(scope="module")
def library(needs_headers: None, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    """The library, compiled."""
    target = tmp_path_factory.mktemp("template") / "libinvert.so"
    compile_library([SOURCE], target)
    return target


def image(buffer: Any) -> tuple[int, int, float]:
    """Width, height and mean of the image of a batch's frame."""
    batch: Any = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
    surface = batch.surfaces[0]
    return surface.width, surface.height, float(surface.frame().to_rgb().mean())


def run(play: Run, library: Path, *properties: str) -> Any:
    wishes = " ".join(f"customlib-props={text}" for text in properties)
    return play(
        f"{video(3)} ! {MUX} ! nvvideoconvert ! video/x-raw(memory:NVMM),format=RGB ! "
        f"identity name=before ! nvdsvideotemplate customlib-name={library} {wishes} name=t ! "
        f"fakesink name=end",
        before=image, end=image,
    )  # fmt: skip


@pytest.mark.slow
def test_images_are_changed_in_place(play: Run, library: Path) -> None:
    ran = run(play, library)
    assert ran.errors == []
    before, after = ran.seen["before"], ran.seen["end"]
    assert len(after) >= 3
    for (width, height, old), (new_width, new_height, new) in zip(before, after, strict=True):
        assert (new_width, new_height) == (width, height)
        assert new == pytest.approx(255 - old, abs=0.01)


def test_a_library_pushes_images_of_its_own(play: Run, library: Path) -> None:
    ran = run(play, library, "mode:half")
    assert ran.errors == []
    before, after = ran.seen["before"], ran.seen["end"]
    assert len(after) >= 3
    for (width, height, old), (new_width, new_height, new) in zip(before, after, strict=True):
        assert (new_width, new_height) == (width // 2, height // 2)
        assert new == pytest.approx(old, abs=2)


def test_a_library_may_drop_images(play: Run, library: Path) -> None:
    ran = run(play, library, "mode:drop")
    assert ran.errors == []
    assert ran.seen["end"] == []


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("mode:throw", "ProcessBuffer failed: no more"),
        ("mode:error", "ProcessBuffer failed"),
        ("other:1", "the library refuses other"),
        ("mode:refuse", "refuses its first call"),
    ],
)
def test_what_a_library_refuses_is_an_error(
    play: Run, library: Path, wish: str, message: str
) -> None:
    ran = run(play, library, wish)
    assert any(message in text for text in ran.errors), ran.errors


def test_a_file_that_is_no_library_is_refused(play: Run, tmp_path: Path) -> None:
    path = tmp_path / "no.so"
    path.write_text("text")
    ran = run(play, path)
    assert any("cannot use the library" in text for text in ran.errors), ran.errors


FUNCTION = """
import pyds

state = {"mode": "invert"}

def set_property(key, value):
    state[key] = value
    return key == "mode"

def process(batch, images):
    frame = pyds.NvDsFrameMeta.cast(batch.frame_meta_list.data)
    assert [image.shape for image in images] == [(frame.pipeline_height, frame.pipeline_width, 4)]
    if state["mode"] == "text":
        return "done"
    images[0][:, :, :3] = 255 - images[0][:, :, :3]
    return state["mode"] != "drop"
"""


@pytest.fixture
def function(tmp_path: Path) -> Path:
    path = tmp_path / "function.py"
    path.write_text(FUNCTION)
    return path


def test_a_python_function_changes_images_in_place(play: Run, function: Path) -> None:
    ran = run(play, function)
    assert ran.errors == []
    before, after = ran.seen["before"], ran.seen["end"]
    assert len(after) >= 3
    for (*size, old), (*new_size, new) in zip(before, after, strict=True):
        assert new_size == size
        assert new == pytest.approx(255 - old, abs=0.01)
    assert run(play, function, "mode:drop").seen["end"] == []


@pytest.mark.parametrize(
    ("wish", "text", "message"),
    [
        ("mode:text", FUNCTION, "the function returned str"),
        ("other:1", FUNCTION, "the library refuses other"),
        ("mode:a", "def process(batch, images):\n    raise ValueError('no more')\n", "no more"),
        ("mode:a", "x = 1\n", "it has no function process"),
    ],
)
def test_what_a_python_function_does_wrong_is_an_error(
    play: Run, tmp_path: Path, wish: str, text: str, message: str
) -> None:
    path = tmp_path / "function.py"
    path.write_text(text if wish != "mode:a" else text + "def set_property(k, v): pass\n")
    assert message in str(run(play, path, wish).errors)
