"""The Python of the page on precision runs, and its sample table is one."""

import re
import shutil
from pathlib import Path

import onnx

from headrace.engine.precision import CalibrationTable

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "int8.md").read_text()


def test_the_python_of_the_page_runs(tmp_path, monkeypatch, capsys):
    shutil.copy(ROOT / "examples" / "conveyor" / "detector.onnx", tmp_path)
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(compile(block, "docs/int8.md", "exec"), {})
    onnx.checker.check_model("small.onnx")
    assert "1 layers in INT8, 32 without a scale" in capsys.readouterr().out


def test_the_sample_table_reads():
    (sample,) = re.findall(r"```text\n(TRT.*?)```", PAGE, re.S)
    table = CalibrationTable.from_bytes(sample.encode())
    assert table.scales["image"] * 127 > 0.99
