"""Sources of public plugins: compiled unchanged, loaded, checked, and run from an ONNX node.

    python -m tests.outside.plugin_sources FOLDER [--only TEXT] [--report FILE]

FOLDER has checkouts of repositories. A source that registers a plugin or defines a creator is
compiled with the folders of headers that its repository has and the files that define what it
lacks, as its own build file would. nvcc compiles kernels where it is; without a GPU the call is
refused by name.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

COMPUTES, REFUSED, BREAKS = "computes", "refused by name: no GPU", "breaks"
CHECKED = "built, and check-plugin refuses its call by name: no GPU"
OTHERS = "not made with inputs that were tried"
CREATOR = "its creator fails, and there is no GPU"
SOURCES, HEADERS = (".cpp", ".cc", ".cu"), (".h", ".hpp", ".cuh", ".hh", ".inl")
OPENCV = Path("/usr/include/opencv4")
TIMEOUT_S, ROUNDS = 400, 16
_HEADS = ((1, 84, 6400), (1, 84, 1600), (1, 84, 400))
_GRIDS = ((1, 255, 80, 80), (1, 255, 40, 40), (1, 255, 20, 20))
_NET = (80, 640, 640, 1000)
_FEW = "int32:7"
_LEVELS = ("2x20x2x4", "int32:1x2", "2x5x1x2", "2x5x2x8", "2x5x2x4")
_DEPTH = ("2x3x4x5x6", "1x5x6x8", _FEW, _FEW, _FEW, _FEW, _FEW)
_ROWS = ("2x33x80", "int32:2")
_EIGHT, _TABLE, _BERT = (0.5,) * 8, (0.5,) * 80, "bert_embeddings_"
_SCALES = {"beta": _EIGHT, "gamma": _EIGHT}
_EMBEDDED = {
    **{f"{_BERT}layernorm_{name}": values for name, values in _SCALES.items()},
    **{f"{_BERT}{name}_embeddings": _TABLE for name in ("word", "token_type", "position")},
    **dict.fromkeys(("output_fp16", "full_mask", "mha_type_id"), 0),
}
GIVEN: Mapping[str, tuple[Mapping[str, Any], Sequence[tuple[int, ...] | str]]] = {
    r"yolo(v8|11|v12)[^/]*/plugin/": (
        {"combinedInfo": (80, 17, 0, 640, 640, 1000, 0, 0, 0, 8, 16, 32)}, _HEADS,
    ),
    r"yolov1[03]/plugin/": ({"combinedInfo": (*_NET, 8, 16, 32)}, _HEADS),
    r"yolo26/plugin/": ({"combinedInfo": (80, 17, 300, 1, 0, 0, 0, 8400, 8, 16, 32)}, _HEADS),
    r"yolov9/plugin/": ({"netinfo": (*_NET, 0)}, _HEADS),
    r"yolov[57]/plugin/": ({"netinfo": (*_NET, 0), "kernels": None}, _GRIDS),
    r"/bev_pool_v2/": ({"out_height": 8, "out_width": 8}, _DEPTH),
    r"/multi_scale_deformable_attn/": ({}, _LEVELS),
    r"/MaskP(lugin|ugin)[^/]*/": ({}, _ROWS),
    r"/GruPlugin/": (
        {"input": 4, "hidden": 4, "x": _TABLE, "h": _TABLE, "bias": _TABLE},
        ("2x3x4", "int32:2"),
    ),
    r"/useCuBLAS/": ({"weight": _TABLE, "k": 8, "n": 10}, ("2x4x8",)),
    r"/embLayerNormVar": (_EMBEDDED, ("int32:6", "int32:6", "int32:3", "int32:4")),
    r"/embLayerNormPlugin": (_EMBEDDED, ("int32:2x4",) * 3),
    r"/skipLayerNormPlugin[^/]*$": ({"type_id": 0, "ld": 8, **_SCALES}, ("4x2x8x1x1",) * 2),
    r"/geluPlugin/": ({"type_id": 0}, ("2x8x16",)),
    r"/custom-slice-plugin": ({"start": 0, "size": 1}, ("2x3x8x8",)),
    r"/disentangledAttentionPlugin/": ({"span": 4, "factor": 0.5}, ("2x8x8",) * 3),
}  # fmt: skip
"""Fields and inputs of sources, as their programs make them; None: three anchors."""
_ONNX = {"HALF": "FLOAT16", "BF16": "BFLOAT16"}
_REGISTERS = re.compile(
    r"^[ \t]*REGISTER_TENSORRT_PLUGIN\s*\(|\bgetCreators\s*\(|\bgetPluginCreators\s*\(", re.M
)
_NO_HEADER = re.compile(r"(?:fatal error: |cannot open source file \")([\w./+-]+)(?:\"|: No such)")
_BESIDE = re.compile(r"^\s+(?:fix: )?(\S+) beside it defines \w+: compile it too", re.M)
_MACRO = re.compile(r"the header asks for one of these: -D (\w+)")
_UNDEFINED = re.compile(r"nothing defines (?:[\w ]+ )?(?:\w+::)*(\w+)(?:<[^()]*>)?(\(|$)", re.M)


@dataclass
class Row:
    """What became of a source.

    Attributes:
        source: below the folder.
        beside: files that were compiled with it.
        error: of the compiler, empty if it compiles.
        release: of TensorRT that it was compiled as for, empty for the usual one.
        plugins: name of each plugin that it registers -> its end.
        said: sentences of checks and runs.
    """

    source: str
    beside: list[str] = field(default_factory=list)
    error: str = ""
    release: str = ""
    plugins: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    @property
    def runs(self) -> bool:
        """Whether one of its plugins was built, and computed or was refused by name."""
        return any(end in (COMPUTES, REFUSED, CHECKED) for end in self.plugins.values())


def sources(folder: Path, only: str = "") -> Iterator[Path]:
    """List the sources that register plugins, or include a header that does."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SOURCES or path.stem.endswith("_host") or not path.is_file():
            continue
        if only not in str(path):
            continue
        beside = [path.with_suffix(suffix) for suffix in HEADERS]
        texts = [p.read_text("utf-8", "replace") for p in (path, *beside) if p.is_file()]
        if any(map(_REGISTERS.search, texts)):
            yield path


def compiled(source: Path, repository: Path, library: Path, beside: Sequence[str] = ()) -> Row:
    """Compile a source with what of its repository it needs."""
    row = Row(f"{repository.name}/{source.relative_to(repository)}")
    folders = [p for p in (OPENCV,) if p.is_dir()]
    files = [source.parent / name for name in beside]
    macros: list[str] = []
    every = [p for p in repository.rglob("*") if p.suffix in (*HEADERS, *SOURCES)]
    for _ in range(ROUNDS):
        command = [sys.executable, "-m", "headrace", "compile", source, *files, "-o", library]
        for one in folders:
            command += ["-I", one]
        command += [f"-D{name}" for name in macros]
        code, said = _ran([*map(str, command)])
        row.error = said if code else ""
        if asked := [name for name in _MACRO.findall(said) if name not in macros]:
            macros.append(asked[0])
            continue
        if not code or not _completed(said, source, every, folders, files):
            break
    row.beside = [os.path.relpath(f, source.parent) for f in files]
    if found := re.search(r"compiled as for TensorRT (\d+)", said):
        row.release = found[1]
    return row


def _completed(
    said: str, source: Path, every: list[Path], folders: list[Path], files: list[Path]
) -> bool:
    """Add folders and files that the compiler or linker misses; False if there are none."""
    before = len(folders) + len(files)
    near = sorted(every, key=lambda p: -len(os.path.commonpath([p, source.parent])))
    for header in _NO_HEADER.findall(said):
        named = [p for p in near if str(p).endswith(f"/{header}")]
        holders = [Path(str(p).removesuffix(f"/{header}")) for p in named]
        folders += [p for p in holders if p not in folders][:1]
    wanted = _BESIDE.findall(said)
    files += [p for p in near if p.name in wanted and p.parent == source.parent and p not in files]
    if len(folders) + len(files) == before:
        many = "more)" in said  # tables of kernels, which the build file lists
        wanted_names = {
            name: re.compile(rf"\b{name}\s*" + (r"\([^;{}]*\)[^;{}]*\{" if called else "[={]"))
            for name, called in _UNDEFINED.findall(said)
            if called or not many
        }
        others = [p for p in near if p.suffix in SOURCES and p not in (source, *files)]
        texts = {p: _text(p) for p in others if not p.stem.endswith("_host")}
        while wanted_names and texts:
            having = {p: [n for n, d in wanted_names.items() if d.search(texts[p])] for p in texts}
            best = max(having, key=lambda p: len(having[p]))
            if not having[best]:
                break
            files.append(best)
            wanted_names = {n: d for n, d in wanted_names.items() if n not in having[best]}
    return len(folders) + len(files) > before


@lru_cache(maxsize=4096)
def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace")


def lived(row: Row, library: Path) -> None:
    """Let each plugin of a library be checked and run, in a process that may end."""
    command = [
        sys.executable,
        "-m",
        "tests.outside.plugin_sources",
        "--live",
        row.source,
        str(library),
    ]
    code, said = _ran(command)
    for line in said.splitlines():
        if line.startswith('{"plugin": '):
            told = json.loads(line)
            row.plugins[told["plugin"]] = told["end"]
            row.said += told["said"]
    if code or not row.plugins:
        row.said.append(said[-600:])


def _ran(command: list[str]) -> tuple[int, str]:
    """Run a command; exit code, and what it said, within the time it has."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        start_new_session=True, cwd=Path(__file__).parents[2],
    ) as process:  # fmt: skip
        try:
            said, _ = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said = f"{process.communicate()[0]}\nno end within {TIMEOUT_S} s"
        return process.returncode, said


def live(library: Path, source: str) -> None:
    """Check each plugin of a library, and run a model of one node of it."""
    from headrace.diagnose.plugin_check.subjects import Trial, _runs, _takes, tried, why_no_kernels
    from headrace.plugins.registry import get_plugin_registry

    registry = get_plugin_registry()
    before = {id(c) for c in registry.all_creators}
    registry.load_library(library)
    for creator in [c for c in registry.all_creators if id(c) not in before]:
        end, said = OTHERS, list[str]()
        given = next((g for pattern, g in GIVEN.items() if re.search(pattern, source)), None)
        trial = Trial(_given(creator, *given)) if given else tried(creator, {}, ())
        if trial.subject is not None:
            end, told = _end(partial(_run_node, trial.subject))
            if end == BREAKS:  # as a program adds it, which names no operators
                said.append(f"node: {told}")
                why = why_no_kernels(creator)
                end, told = _end(partial(_takes if why else _runs, trial.subject))
                if why and end == COMPUTES:
                    end, told = CHECKED, why
            said += [told] * bool(told)
        else:
            said += [b.event for b in trial.refusals]
            if {b.clause for b in trial.refusals} == {"create"} and why_no_kernels(creator):
                end = CREATOR
        print(json.dumps({"plugin": creator.name, "end": end, "said": said}), flush=True)


def _given(creator: Any, fields: Mapping[str, Any], shapes: Sequence[tuple[int, ...] | str]) -> Any:
    """A plugin as the program beside its source makes it."""
    import numpy as np

    from headrace.diagnose.plugin_check.lives import Subject
    from headrace.diagnose.plugin_check.subjects import parsed_input, sized
    from headrace.plugins import PluginField, PluginFieldCollection, PluginFieldType

    kernels = np.ones(3, [("width", "i4"), ("height", "i4"), ("anchors", "f4", 6)])
    collection = PluginFieldCollection(
        [
            PluginField(name, kernels, PluginFieldType.FLOAT32)
            if values is None
            else PluginField(name, np.array(values, np.float32), PluginFieldType.FLOAT32)
            if np.asarray(values).dtype.kind == "f"
            else PluginField(name, np.array(values, np.int32), PluginFieldType.INT32)
            for name, values in fields.items()
        ]
    )
    texts = (s if isinstance(s, str) else "x".join(map(str, s)) for s in shapes)
    return Subject(creator, collection, *sized([parsed_input(text) for text in texts]))


def _end(act: Callable[[], None]) -> tuple[str, str]:
    """The end of an act in a copy of this process, with what was wrong."""
    from headrace.diagnose.plugin_check.isolation import DefectError, in_copy

    try:
        _, breach = in_copy(act)
    except DefectError as error:
        return BREAKS, str(error).strip().splitlines()[-1]
    if breach is None:
        return COMPUTES, ""
    refused = "runs on a GPU" in breach.event or "no NVIDIA driver" in breach.event
    return (REFUSED if refused else BREAKS), breach.event


def _run_node(subject: Any) -> None:
    """Build a model whose node is made of a plugin's fields, and run it once."""
    import numpy as np
    from onnx import TensorProto, helper

    from headrace.diagnose.plugin_check.lives import added
    from headrace.engine import BuildOptions, build
    from headrace.plugins.negotiate import closest
    from tests.plugins.models import network

    creator, size = subject.creator, subject.sizes[0]
    attributes: dict[str, object] = {"plugin_version": creator.plugin_version}
    for one in subject.fields:
        data = one.data
        text = bytes(data).rstrip(b"\0").decode() if isinstance(data, (bytes, bytearray)) else ""
        attributes[one.name] = text or np.asarray(data).ravel().tolist()
    inputs = [
        helper.make_tensor_value_info(
            f"x{i}", helper.np_dtype_to_tensor_dtype(spec.dtype), list(size[i])
        )
        for i, spec in enumerate(subject.specs)
    ]
    layer = added(subject, subject.made())
    layer.output_shapes([s.dims for s in subject.specs])
    types = layer.output_types([closest(s.dtype) for s in subject.specs])
    outputs = [
        helper.make_tensor_value_info(
            f"y{i}", getattr(TensorProto, _ONNX.get(t.name, t.name)), None
        )
        for i, t in enumerate(types)
    ]
    node = helper.make_node(
        creator.name, [i.name for i in inputs], [o.name for o in outputs], name="one", **attributes
    )
    graph = helper.make_graph([node], "g", inputs, outputs)
    with tempfile.TemporaryDirectory() as folder:
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        plan = build(network(model, Path(folder)), BuildOptions())
        values = {
            info.name: np.ones(size[i], subject.specs[i].dtype) for i, info in enumerate(inputs)
        }
        with plan.open_session() as session:
            found = session.run(values)
    assert len(found) == len(types)
    assert any(array.size for array in found.values()), "no output has an element"


def table(rows: Sequence[Row]) -> str:
    """The rows as a table of Markdown, with counts."""
    lines = ["| source | with | TensorRT | result |", "|---|---|---|---|"]
    for row in rows:
        end = "; ".join(f"{name}: {end}" for name, end in row.plugins.items())
        errors = [line.strip() for line in row.error.splitlines() if "error" in line]
        end = f"not compiled: {errors[1 if len(errors) > 1 else 0][-160:]}" if errors else end
        more = " ".join(f"({s[:120]})" for s in row.said[:2])
        lines.append(f"| {row.source} | {' '.join(row.beside)} | {row.release} | {end} {more} |")
    compiled_ones = sum(not row.error for row in rows)
    runs = sum(row.runs for row in rows)
    counts = f"{len(rows)} sources, {compiled_ones} compiled, {runs} run"
    return "\n".join([*lines, "", counts]).replace("\n\n| ", "\n| ")


def tried_sources(folder: Path, only: str = "") -> Iterator[Row]:
    """Try each source of the checkouts of a folder."""
    for repository in sorted(p for p in folder.iterdir() if p.is_dir()):
        done: set[Path] = set()
        for source in sources(repository, only):
            if source in done:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                library = Path(scratch, f"lib{source.stem}.so")
                row = compiled(source, repository, library)
                if not row.error:
                    done |= {(source.parent / name).resolve() for name in row.beside}
                    lived(row, library)
            yield row


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--live", metavar="SOURCE")
    asked = parser.parse_args()
    if asked.live:
        return live(asked.folder, asked.live)
    rows = []
    for row in tried_sources(asked.folder, asked.only):
        rows.append(row)
        print(json.dumps(asdict(row)), flush=True)
        if asked.report:
            asked.report.write_text(table(rows))
    return None


if __name__ == "__main__":
    main()
