"""Python modules as custom libraries: found, imported, called, and their errors told."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from headrace.custom import open_library
from headrace.errors import CustomLibraryError, ParserError
from headrace.meta import DetectionParams, Detections, Layer, NetworkInfo

GOOD = """
from headrace import Detections

THRESHOLD = 0.5

def parse_rows(layers, network, params):
    rows = layers["rows"].data
    rows = rows[rows[:, 5] >= params.per_class_threshold[rows[:, 0].astype(int)]]
    return Detections(rows[:, 1:5], rows[:, 5], rows[:, 0])

def helper(a):
    return a
"""


def write(folder: Path, text: str, name: str = "my_parser.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_function_is_called_with_the_three_contract_arguments(
    tmp_path: Path, layers: dict[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    library = open_library(write(tmp_path, GOOD))
    result = library.bbox_parser("parse_rows")(layers, network, params)
    assert library.kind == "python"
    assert library.symbols() == ["parse_rows"]
    np.testing.assert_array_equal(result.boxes, [[10, 20, 30, 40]])
    np.testing.assert_array_equal(result.class_ids, [1])


def test_missing_function_names_the_nearest_and_all_parsers(tmp_path: Path) -> None:
    library = open_library(write(tmp_path, GOOD))
    with pytest.raises(CustomLibraryError) as caught:
        library.bbox_parser("ParseRow")
    assert "did you mean parse_rows?" in str(caught.value)
    assert "helper" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\ndef parse(:\n    pass\n", 2, "SyntaxError"),
        ("x = 1\n\ny = x / 0\n", 3, "ZeroDivisionError: division by zero"),
        ("import no_such_module_anywhere\n", 1, "neither beside my_parser.py nor installed"),
        ("import tensorrt\n", 1, "write: import headrace.trt as trt"),
        ("import sys\nsys.exit(3)\n", 2, "ended the program"),
    ],
)
def test_failing_import_is_told_by_file_and_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(CustomLibraryError) as caught:
        open_library(path)
    assert f"{path}:{line}" in str(caught.value)
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) < 8


def test_failing_sibling_is_told_by_its_own_line(tmp_path: Path) -> None:
    sibling = write(tmp_path, "a = 1\nb = undefined_name\n", "decode.py")
    with pytest.raises(CustomLibraryError) as caught:
        open_library(write(tmp_path, "import decode\n"))
    assert f"{sibling}:2" in str(caught.value)
    assert "my_parser.py:1" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def parse(a, b): return None", "cannot be called with three arguments"),
        ("def parse(a, b, c, d): return None", "cannot be called with three arguments"),
        ("def parse(a, b, c, *, d): return None", "cannot be called with three arguments"),
        ("parse = 3", "is a int, not a function"),
        ("class parse:\n    pass", "is a class"),
        ("async def parse(a, b, c): return None", "coroutine"),
        ("def parse(a, b, c):\n    yield 1", "generator"),
        (
            "def parse(a, b, c) -> 'headrace.Classification': ...",
            "name it in parse-classifier-func",
        ),
        ("def parse(a, b, c) -> 'Segmentation': ...", "returns Segmentation by its annotation"),
    ],
)
def test_what_cannot_be_a_parser_is_refused_before_the_first_frame(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(CustomLibraryError, match=words) as caught:
        open_library(write(tmp_path, text)).bbox_parser("parse")
    assert "def parse(layers, network, params)" in str(caught.value)


def test_callable_objects_and_extra_defaults_are_parsers(
    tmp_path: Path, layers: dict[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    text = """
from headrace import Detections
class Parser:
    def __call__(self, layers, network, params, scale=2):
        return Detections.empty()
parse = Parser()
"""
    parser = open_library(write(tmp_path, text)).bbox_parser("parse")
    assert isinstance(parser(layers, network, params), Detections)


def test_siblings_of_two_folders_do_not_mix(
    tmp_path: Path, layers: dict[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    parser = """
from headrace import Detections
import shared_utils_of_test
import inner_package_of_test.deep
def parse(layers, network, params):
    n = shared_utils_of_test.N + inner_package_of_test.deep.N
    return Detections([[0, 0, n, 1]], [1], [0])
"""
    widths = []
    for i in (1, 2):
        folder = tmp_path / str(i)
        (folder / "inner_package_of_test").mkdir(parents=True)
        write(folder, f"N = {i}", "shared_utils_of_test.py")
        write(folder / "inner_package_of_test", "", "__init__.py")
        write(folder / "inner_package_of_test", f"N = {10 * i}", "deep.py")
        path = list(sys.path)
        library = open_library(write(folder, parser))
        assert sys.path == path
        assert "shared_utils_of_test" not in sys.modules
        widths.append(library.bbox_parser("parse")(layers, network, params).boxes[0, 2])
    assert widths == [11, 22]


def test_modules_of_the_program_are_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = type(sys)("utils_of_the_program")
    monkeypatch.setitem(sys.modules, "utils_of_the_program", theirs)
    write(tmp_path, "N = 5", "utils_of_the_program.py")
    write(tmp_path, "import utils_of_the_program\nassert utils_of_the_program.N == 5\n")
    open_library(tmp_path / "my_parser.py")
    assert sys.modules["utils_of_the_program"] is theirs


def test_a_changed_file_is_read_anew(
    tmp_path: Path, layers: dict[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    text = """
from headrace import Detections
def parse(layers, network, params):
    return Detections([[0, 0, 1, 1]], [1], [{}])
"""
    ids = []
    for class_id in (1, 2):
        library = open_library(write(tmp_path, text.format(class_id)))
        ids.append(int(library.bbox_parser("parse")(layers, network, params).class_ids[0]))
    assert ids == [1, 2]


def test_error_in_a_call_names_the_users_line(
    tmp_path: Path, layers: dict[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    text = """
import numpy as np
def decode(data):
    return np.zeros(3) + np.zeros(4)
def parse(layers, network, params):
    return decode(layers["rows"].data)
"""
    path = write(tmp_path, text)
    with pytest.raises(ParserError) as caught:
        open_library(path).bbox_parser("parse")(layers, network, params)
    message = str(caught.value)
    assert message.startswith(f"{path}:4 ")
    assert "ValueError: operands could not be broadcast" in message
    assert "my_parser.py:6 in parse" in message
    assert "validate.py" not in message


def test_wrong_layer_name_lists_the_layers(
    tmp_path: Path, layers: dict[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    path = write(tmp_path, "def parse(layers, network, params):\n    return layers['output']\n")
    with pytest.raises(ParserError, match="the network's outputs are: rows"):
        open_library(path).bbox_parser("parse")(layers, network, params)


def test_wrong_shape_in_detections_is_told_by_the_users_line(
    tmp_path: Path, layers: dict[str, Layer], network: NetworkInfo, params: DetectionParams
) -> None:
    text = """
from headrace import Detections
def parse(layers, network, params):
    return Detections(boxes=[[1, 2, 3]], scores=[1], class_ids=[0])
"""
    path = write(tmp_path, text)
    with pytest.raises(ParserError) as caught:
        open_library(path).bbox_parser("parse")(layers, network, params)
    assert f"{path}:4" in str(caught.value)
    assert "boxes has shape (1, 3)" in str(caught.value)


def test_the_working_directory_is_that_of_before(tmp_path: Path) -> None:
    before = Path.cwd()
    open_library(write(tmp_path, "import os\nos.chdir('/')\n" + GOOD))
    assert Path.cwd() == before
