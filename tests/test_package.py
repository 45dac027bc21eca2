"""The package as a whole: light to import, all public names there, rules of the house kept."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import headrace
from tests.parsed import SOURCE, modules, nodes_of

ROOT = Path(__file__).parents[1]

# Files below 40 lines beside `__init__.py`, and why.
SMALL = {
    "custom/converter/operations.py": "what the worker of a library answers",
    "__main__.py": "`python -m headrace`",
    "_core/_native_api.py": "generated",
    "meta/track_geometry.py": "a record with its units",
    "_core/heap.py": "calls of the C library that no wing owns",
    "errors.py": "a face",
    "plugins/spoken.py": "a table that calls and checks share",
    "pytest_plugin.py": "pytest starts with it, whatever it runs",
    "trt/plugin.py": "a face: `tensorrt.plugin`",
    "gstreamer/servicemaker/logging.py": "a face: `pyservicemaker.logging`",
    "_core/types.py": "aliases",
    "network/shapes/inference_process.py": "a program, which imports nothing of the package",
    "plugins/custom_files.py": "what of loading needs the registry",
    "trt/types/owner.py": "a protocol",
    "_core/unwinder.py": "imported at `import gi`, of any program, with nothing else",
    "_core/native_check.py": "runs before anything else of the package",
    "_core/named_settings.py": "one grammar, which configs, pipelines and engines read",
    "binary/regular_files.py": "the one door to files that others name",
    "media/sinks/dota.py": "one format; the folder of files is KITTI's",
    "gstreamer/elements/bindings.py": "the one place that imports GStreamer",
    "_wiring.py": "one line for each call from a lower room into a higher one",
}

# Public class names that stand more than once, and why.
DOUBLES = {
    "Buffer": "the service maker's",
    "Builder": "TensorRT's",
    "ColorFormat": "the service maker's",
    "Device": "CuPy's and PyCUDA's",
    "Line": "the service maker's",
    "Node": "the service maker's",
    "ParserError": "ours, and TensorRT's",
    "Pipeline": "the service maker's",
    "Rect": "the service maker's",
    "Stream": "CUDA's, CuPy's and PyCUDA's",
    "Tensor": "the service maker's",
    "Text": "the service maker's",
    "Entry": "",
    "Reason": "",
    "Selection": "",
    "Step": "",
}

# Files that read the words of a finding: they write texts of it. Everything else asks for its code
# and data.
TEXTS = {
    "_core/findings.py": "makes the sentence",
    "cli/options.py": "an error of click",
    "custom/guard/ipc.py": "refuses an error of a worker that says nothing",
    "custom/guard/repro.py": "the report beside a saved call",
    "diagnose/plugin_check/breach.py": "a breach of the contract in the words of its error",
    "diagnose/doctor/checks.py": "the doctor's lines",
    "diagnose/explain/summary.py": "the summary; its sentence is that of an answer",
    "diagnose/lint/findings.py": "of two findings at a line, one has the advice of both",
    "diagnose/lint/text.py": "lint's lines and SARIF",
    "gstreamer/servicemaker/description.py": "a problem of a file, with its line",
    "infer/model/engine_functions.py": "an error of a library's function, with its advice",
    "media/sources/gpu_decoding.py": "words of a notice",
    "pipeline/analytics/rules_file.py": "a problem of a file, with its line",
    "plugins/lookup.py": "puts more advice before that of an error",
    "trt/host/callback_errors.py": "the log of TensorRT",
}
_WORDS = {"sentence", "wording", "expectation", "remedies", "advice"}

# Uses of `Any` for each 1,000 lines of the package. Lower it when it fell; it never rises.
ANY_PER_1000_LINES = 8.2

# Files above 500 lines: the next idea that goes into one goes into a file of its own.
LONG = {
    "config/pipeline_spec.py",
    "config/reading.py",
    "gstreamer/elements/streammux.py",
    "infer/inferencer.py",
    "infer/recognise/recognise.py",
    "meta/objects.py",
    "pipeline/assembly.py",
    "pipeline/pipeline.py",
    "plugins/nodes.py",
    "trt/api/context.py",
    "trt/api/engine.py",
}

# Rooms above 8,000 lines, and why.
LARGE: dict[str, str] = {
    "gstreamer/elements": "a file for each element of the original",
    "config": "a reader for each kind of file, and the tables of their keys",
    "plugins": "the life of one kind of object in five generations; standard/ is a room of its own",
}


VAGUE = re.compile(
    r"\b(what|whose|told|said|says|tells|nobody|somebody|anybody|whatever|whoever)\b", re.IGNORECASE
)


@cache
def _imports(types: bool) -> dict[str, set[str]]:
    """The files that each file imports, in functions too; `types`: for annotations alone too."""
    files = {}
    for name, tree in modules().items():
        if not name.endswith("__init__.py"):
            files["headrace." + name.removesuffix(".py").replace("/", ".")] = tree
    imports = {}
    for name, tree in files.items():
        named = {target for node in _import_nodes(tree, types) for target in _targets(node)}
        imports[name] = (named & set(files)) - {name}
    return imports


def _import_nodes(node: ast.AST, types: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports below a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            for statement in (child.body if types else []) + child.orelse:
                yield from _import_nodes(ast.Module([statement], []), types)
        elif not isinstance(child, ast.expr):  # none is in an expression
            yield from _import_nodes(child, types)


def _targets(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The modules that an import may mean: `from a.b import c` is a.b or a.b.c."""
    if isinstance(node, ast.ImportFrom):
        yield node.module or ""
    for name in node.names:
        yield f"{node.module}.{name.name}" if isinstance(node, ast.ImportFrom) else name.name


def _circles(imports: dict[str, set[str]]) -> Iterator[list[str]]:
    """The largest sets of files of which each leads to each other one."""
    reached: dict[str, set[str]] = {}
    for start in imports:
        ahead, reached[start] = [start], set()
        while ahead:
            new = imports[ahead.pop()] - reached[start]
            reached[start] |= new
            ahead += new
    while circle := next((name for name in reached if name in reached[name]), None):
        files = [name for name in reached[circle] if circle in reached.get(name, ())]
        yield sorted(name.removeprefix("headrace.") for name in files)
        reached = {name: ahead for name, ahead in reached.items() if name not in files}


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_public_names_resolve() -> None:
    assert [name for name in headrace.__all__ if getattr(headrace, name) is None] == []


def test_import_is_light() -> None:
    heavy = "numpy onnx onnxruntime av msgspec PIL click rich yaml supervision cv2 torch"
    code = "import sys, headrace; print(*[m for m in sys.argv[1:] if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy.split()], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_no_file_is_above_600_lines() -> None:
    files = [*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    files += [*(ROOT / "native").rglob("*.cpp"), *(ROOT / "native").rglob("*.h")]
    assert [str(p) for p in files if _lines(p) > 600] == []


def test_a_file_above_500_lines_is_known() -> None:
    long = {name for name in modules() if _lines(SOURCE / name) > 500}
    assert long - LONG == set(), "split it by idea, or list it"


def test_no_room_is_above_8000_lines_without_a_reason() -> None:
    """The files of a wing that are in no room count as one."""
    rooms = Counter[str]()
    for name in modules():
        rooms["/".join(name.split("/")[:-1][:2])] += _lines(SOURCE / name)
    assert {room: n for room, n in rooms.items() if n > 8000 and room not in LARGE} == {}


def test_every_room_stands_in_the_contract_of_its_wing() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    named = {
        f"{container}.{room}"
        for contract in settings["contracts"]
        for container in contract.get("containers", ())
        for layer in contract["layers"]
        for room in re.split(r" [|:] ", layer)
    }
    rooms = {".".join(Path("headrace", name).parts[:3]) for name in modules()
             if len(Path(name).parts) > 2}  # fmt: skip
    assert rooms - named == {"headrace.cli.trtexec"}  # the only room of its wing


def test_no_module_is_below_40_lines_without_a_reason() -> None:
    found = {str(p.relative_to(SOURCE)) for p in SOURCE.rglob("*.py") if _lines(p) < 40}
    assert sorted(n for n in found - set(SMALL) if Path(n).name != "__init__.py") == []


def test_a_public_class_name_stands_once() -> None:
    places = defaultdict(list)
    for name, node in nodes_of(ast.ClassDef):
        if not node.name.startswith("_"):
            places[node.name].append(name)
    assert {k: v for k, v in places.items() if len(v) > 1 and k not in DOUBLES} == {}


def test_any_becomes_rarer() -> None:
    uses = sum(node.id == "Any" for _, node in nodes_of(ast.Name))
    lines = sum(_lines(SOURCE / name) for name in modules())
    assert uses / lines * 1000 <= ANY_PER_1000_LINES


def test_the_words_of_findings_are_written_and_never_read() -> None:
    attributes = list(nodes_of(ast.Attribute))
    readers = {name for name, node in attributes if node.attr in _WORDS}
    asked: list[tuple[str, ast.expr]] = [(name, node.value) for name, node in attributes]  # methods
    for name, node in nodes_of(ast.Compare):
        asked += [(name, part) for part in (node.left, *node.comparators)]
    compared = [f"{name}:{part.lineno}" for name, part in asked if _is_of_finding(part)]
    assert readers == set(TEXTS)
    assert compared == []


def _is_of_finding(node: ast.expr) -> bool:
    """Whether an expression is the text of a finding: an f-string with `brief` or `line`."""
    specs = [part.format_spec for part in getattr(node, "values", ()) if
             isinstance(part, ast.FormattedValue) and part.format_spec]  # fmt: skip
    return any(ast.unparse(spec) in ("f'brief'", "f'line'") for spec in specs)


def test_no_circle_of_files() -> None:
    assert list(_circles(_imports(types=False))) == []


def test_circles_of_types_are_small() -> None:
    assert [files for files in _circles(_imports(types=True)) if len(files) > 4] == []


def _summaries(node: ast.AST, where: str) -> Iterator[tuple[str, str]]:
    """The summary lines of a module and of all classes and functions in it."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        decorators = map(ast.unparse, getattr(node, "decorator_list", ()))
        is_help = any("click.command" in text for text in decorators)  # printed, not a summary
        if (text := ast.get_docstring(node)) and not is_help:
            yield where, text.splitlines()[0]
        for child in node.body:
            yield from _summaries(child, f"{where}: {getattr(child, 'name', '')}")


def unclear_summaries() -> dict[str, list[str]]:
    """Return the summary lines that break the rule, by room: `python -m tests.test_package`."""
    found = defaultdict(list)
    for name, tree in modules().items():
        room = name.split("/")[0].removesuffix(".py")
        for where, line in _summaries(tree, name):
            if VAGUE.search(re.sub(r"`[^`]*`", "", line)) or not line.endswith("."):
                found[room].append(f"{where}: {line}")
    return dict(found)


def test_summary_lines_are_clear_and_end_with_a_period() -> None:
    assert unclear_summaries() == {}


def test_stub_of_the_native_core_is_current(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "headrace._core._native"]
    command += ["-o", str(tmp_path / "x.pyi")]
    subprocess.run(command, check=True)
    stub = SOURCE / "_core" / "_native.pyi"
    assert stub.read_text() == (tmp_path / "x.pyi").read_text(), "run make stubs"


if __name__ == "__main__":
    for room, lines in unclear_summaries().items():
        print(f"{room}: {len(lines)}", *lines, sep="\n  ")


def test_the_project_has_one_name() -> None:
    """Its first name is another project's; the word painted on the demo's belt is in the clip."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = listed.stdout.split("\0")[:-1]
    if not names:
        pytest.skip("not a checkout of git")
    belt = "examples/conveyor/conveyor_scene/surroundings.py"
    former = re.compile(rb"no[r]ia", re.I)
    has_it = [
        name
        for name in names
        if former.search(name.encode())
        or (name != belt and (ROOT / name).is_file() and former.search((ROOT / name).read_bytes()))
    ]
    assert has_it == []
