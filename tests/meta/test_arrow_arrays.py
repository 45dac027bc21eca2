"""Arrays of Arrow made of buffers are those of pyarrow itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from headrace.meta.arrow_arrays import arrow_array

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], pa.float32()),
        ([1, None, 3], pa.int64()),
        ([None, 2.5], pa.float32()),
        ([2**64 - 1, None], pa.uint64()),
        (np.arange(5), pa.int32()),
        (np.zeros(0, np.float32), pa.float32()),
        ([True, None, False] * 5, pa.bool_()),
        ([], pa.string()),
        (["a", "", "日本", None], pa.string()),
        ([], pa.list_(pa.float32())),
        ([["a"], [], None, ["b", "c"]], pa.list_(pa.string())),
        ([np.array([1, 2], np.float32), (), (3.5,)], pa.list_(pa.float32())),
    ],
)
def test_the_same_as_pyarrow(values: Any, kind: Any) -> None:
    array = arrow_array(values, kind)
    array.validate(full=True)
    assert array.equals(pa.array(values, type=kind))
    assert array.null_count == pa.array(values, type=kind).null_count


@pytest.mark.slow
def test_tables_import_no_pandas() -> None:
    code = (
        "import sys\n"
        "from headrace.meta.frame_table import frames_to_arrow\n"
        "from headrace.meta.table import to_arrow\n"
        "to_arrow([]), frames_to_arrow([])\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
