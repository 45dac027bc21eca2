"""Results of analytics lie in memory as C++ code reads them."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from headrace.custom.compile.build_library import compile_library
from headrace.gstreamer import pyds
from headrace.gstreamer.cmeta import data
from tests.gstreamer.cmeta.conftest import PROGRAMS


def test_containers_hold_counts_and_names(gst: Any, tmp_path: Path) -> None:
    target = tmp_path / "libcounts.so"
    compile_library([PROGRAMS / "counts.cpp"], target)
    frame = pyds.NvDsAnalyticsFrameMeta()
    frame.unique_id, frame.ocStatus, frame.objInROIcnt = 7, {"crowd": True}, {"area": 3}
    frame.objLCCurrCnt, frame.objLCCumCnt, frame.objCnt = {"exit": 1}, {"exit": 1 << 40}, {2: 5}
    obj = pyds.NvDsAnalyticsObjInfo()
    obj.unique_id, obj.roiStatus, obj.lcStatus = 7, ["area", "yard"], ["exit"]
    obj.dirStatus, obj.objStatus = "south", "x"
    addresses = [data.address_of(one) for one in (frame, obj)]
    text = ctypes.create_string_buffer(200)
    pointers = [ctypes.c_void_p(address) for address in addresses]
    ctypes.CDLL(str(target)).describe(*pointers, text, 200)
    assert text.value == b"7 1 3 1 1099511627776 5 / 7 2 exit south x"
    assert [data.value_at(address) for address in addresses] == [frame, obj]
    for address in addresses:
        data._drop(address)
