"""`noria exec --report`: the page and the picture of a run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from noria.errors import NoriaError
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


def test_the_page_of_a_pipeline_in_a_process_of_its_own(gst: Any, tmp_path: Path) -> None:
    script, page = tmp_path / "app.py", tmp_path / "out.html"
    script.write_text(CHILD)
    done = started_anew("exec", "--report", str(page), str(script))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.count("report of the run") == 1
    elements = {row[1]: row for row in rows(page.read_text(), "Elements")}
    assert elements["videotestsrc"][2] == elements["fakesink"][2] == "6"


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
    assert ("data:image/svg+xml" in text) == (shutil.which("dot") is not None)


def test_names_that_are_refused(gst: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from noria.gst.usage import Usage
    from noria.gst.usage_report import check_report, write_report

    with pytest.raises(NoriaError, match=r"\.html"):
        check_report(tmp_path / "out.txt")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoriaError, match="no program dot"):
        check_report(tmp_path / "out.svg")
    check_report(tmp_path / "out.html")
    with pytest.raises(NoriaError, match="no pipeline"):
        write_report(Usage(), tmp_path / "out.dot", "app.py")
    write_report(Usage(picture="digraph { a -> b }"), tmp_path / "out.dot", "app.py")
    assert (tmp_path / "out.dot").read_text() == "digraph { a -> b }"
    write_report(Usage(), tmp_path / "out.html", "<app>.py")
    assert "&lt;app&gt;.py" in (tmp_path / "out.html").read_text()
