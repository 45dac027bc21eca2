"""`headrace exec --report`: the page and the image of a run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from headrace.errors import HeadraceError
from tests.warm import started_anew

APP = """
import pyds
from gi.repository import Gst

pipeline = Gst.parse_launch(
    "videotestsrc num-buffers=6 ! video/x-raw,format=I420,width=64,height=48 ! m.sink_0 "
    "nvstreammux name=m batch-size=1 width=64 height=48 sync-inputs=1 ! nvvideoconvert ! "
    "nvdsosd name=osd ! fakesink"
)

def probe(pad, info):
    batch = pyds.gst_buffer_get_nvds_batch_meta(hash(info.get_buffer()))
    frame = pyds.NvDsFrameMeta.cast(batch.frame_meta_list.data)
    obj = pyds.nvds_acquire_obj_meta_from_pool(batch)
    pyds.nvds_add_obj_meta_to_frame(frame, obj, None)
    return Gst.PadProbeReturn.OK

pipeline.get_by_name("osd").get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, probe)
print(hasattr(pyds, "nvds_no_such_thing"))
pipeline.set_state(Gst.State.PLAYING)
pipeline.get_bus().timed_pop_filtered(20 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
pipeline.set_state(Gst.State.NULL)
raise SystemExit(3)
"""


def rows(page: str, heading: str) -> list[list[str]]:
    part = page.split(f"<h2>{heading}</h2>")[1].split("<h2>")[0]
    cells = re.findall(r"<tr>(<td.*?)</tr>", part, re.DOTALL)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in cells]


CHILD = """
from multiprocessing import Process
from pyservicemaker import Pipeline


def main():
    pipeline = Pipeline("in a child").add("videotestsrc", "source", {"num-buffers": 6})
    pipeline.add("fakesink", "sink").link("source", "sink").start().wait()


if __name__ == "__main__":
    process = Process(target=main)
    process.start()
    process.join()
"""


@pytest.mark.slow
def test_the_page_of_a_pipeline_in_a_process_of_its_own(gst: Any, tmp_path: Path) -> None:
    script, page = tmp_path / "app.py", tmp_path / "out.html"
    script.write_text(CHILD)
    done = started_anew("exec", "--report", str(page), str(script))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.count("report of the run") == 1
    elements = {row[1]: row for row in rows(page.read_text(), "Elements")}
    assert elements["videotestsrc"][2] == elements["fakesink"][2] == "6"


@pytest.mark.slow
def test_the_page_of_a_run(gst: Any, tmp_path: Path) -> None:
    script, page = tmp_path / "app.py", tmp_path / "out.html"
    script.write_text(APP)
    done = started_anew("exec", "--report", str(page), str(script))
    assert (done.returncode, done.stdout) == (3, "False\n"), done.stderr
    assert f"{page}: report of the run" in done.stderr
    text = page.read_text()
    elements = {row[1]: row for row in rows(text, "Elements")}
    for kind in ("videotestsrc", "nvstreammux", "nvdsosd", "fakesink"):
        assert elements[kind][2:4] == ["6", "6"]
        assert float(elements[kind][4]) > 0
    assert float(elements["nvdsosd"][5]) > 0
    assert elements["fakesink"][5] == ""
    ((pad, calls, cost),) = rows(text, "Probes of the application")
    assert (pad, calls) == ("osd.sink", "6")
    assert float(cost) > 0
    assert [row[1:3] for row in rows(text, "Approximated")] == [["sync-inputs", "True"]]
    assert "<code>nvds_no_such_thing</code>" in text
    counts = dict(rows(text, "Metadata"))
    assert (counts["frames"], counts["objects"]) == ("6", "6")
    assert ["nvds_add_obj_meta_to_frame", "6"] in rows(text, "Used")
    titles = re.findall(r'<text class="title"[^>]*>([^<]*)<', text)
    assert {"m", "osd", "videotestsrc0", "fakesink0"} <= set(titles)
    assert "video/x-raw(memory:NVMM)" in text.split("digraph")[0]
    assert "digraph pipeline" in text


WRITTEN = """
from pathlib import Path
from headrace.gstreamer.elements.usage import Usage
from headrace.gstreamer.elements.usage_report import write_report
usage = Usage()
usage.start()
try:
    exec({app!r})
except SystemExit:
    for name in ("out.svg", "out.json"):
        write_report(usage, Path(name), "app.py")
"""


@pytest.mark.slow
def test_the_image_and_the_numbers_of_a_run(gst: Any, tmp_path: Path) -> None:
    """Neither needs Graphviz, which is not on PATH here."""
    done = subprocess.run(
        [sys.executable, "-c", WRITTEN.format(app=APP)], cwd=tmp_path,
        env={**os.environ, "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    tree = ElementTree.parse(tmp_path / "out.svg")
    names = [one.text for one in tree.iter("{http://www.w3.org/2000/svg}title")]
    ours = [name for name in names if name and name.endswith("(nvdsosd)")]
    assert len(ours) == 1
    caps = [name for name in names if name and name.startswith("video/x-raw(memory:NVMM)")]
    assert len(caps) == 3
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["elements"]["osd"]["metadata"] == {"batches": 6, "frames": 6, "objects": 6}
    assert found["elements"]["m"]["metadata"] == {"batches": 6, "frames": 6}
    assert found["probes"]["osd.sink"]["calls"] == found["pyds"]["nvds_add_obj_meta_to_frame"] == 6
    assert found["missing"] == {"nvds_no_such_thing": 1}
    assert found["without_effect"] == [["m", "sync-inputs", "True"]]


def test_a_pad_leads_through_bins_that_are_opened(gst: Any) -> None:
    from headrace.gstreamer.elements.pipeline_graph import pipeline_graph

    pipeline = gst.parse_launch(
        "bin.( name=outer bin.( name=inner videotestsrc name=a ! queue name=b ) ! queue name=c ) "
        "! tee name=t ! nvvideoconvert ! nveglglessink name=s t. ! fakesink name=f"
    )
    boxes, links = pipeline_graph(pipeline, lambda element: "")
    names = {box.key: box.title for box in boxes}
    found = {(names[one.source], names[one.target]) for one in links}
    convert = next(name for name in names.values() if name.startswith("nvvideoconvert"))
    assert found == {
        ("a", "b"), ("b", "c"), ("c", "t"), ("t", convert), (convert, "s"), ("t", "f"),
    }  # fmt: skip
    assert {box.title: box.group for box in boxes if box.group} == dict.fromkeys("abc", "outer")


def test_names_that_are_refused(gst: Any, tmp_path: Path) -> None:
    from headrace.gstreamer.elements.usage import Usage
    from headrace.gstreamer.elements.usage_report import check_report, write_report

    with pytest.raises(HeadraceError, match=r"\.html"):
        check_report(tmp_path / "out.txt")
    check_report(tmp_path / "out.html")
    with pytest.raises(HeadraceError, match="no pipeline"):
        write_report(Usage(), tmp_path / "out.dot", "app.py")
    write_report(Usage(image="digraph { a -> b }"), tmp_path / "out.dot", "app.py")
    assert (tmp_path / "out.dot").read_text() == "digraph { a -> b }"
    write_report(Usage(), tmp_path / "out.html", "<app>.py")
    assert "&lt;app&gt;.py" in (tmp_path / "out.html").read_text()
