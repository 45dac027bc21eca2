"""The TensorRT release that sources are written for, by their content and by trials.

Sources that name no release get the usual one of the headers. Where they do not compile with it,
the releases that their text speaks for are tried, then the others.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace._core.findings import Finding

MACRO = "NV_TENSORRT_MAJOR"
USUAL = 10
MAJORS = (10, 11, 8, 7, 6, 5)
"""Interfaces change with these releases; 9 has those of 8."""
_FRONT_END = "--cuda"
"""Lets nvcc stop behind the C++ of the host, before it compiles kernels."""
_USES = re.compile(r"nvinfer1|NvInfer|NvOnnxParser|NvCaffeParser|NvUffParser|nvonnxparser")
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
_EVIDENCE: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    (r"\bNV_TENSORRT_MAJOR\s*(?:[<>=!]=?)\s*11\b|\bNV_TENSORRT_MAJOR\s*>\s*10\b",
     "a test for TensorRT 11", (11,)),
    (r"\bIPluginV3\w*", "IPluginV3", (10, 11)),
    (r"\benqueue\s*\([^)]*\bvoid\s*\*\s*\*\s*\w+[^)]*\)(?!\s*noexcept)", "enqueue with void**",
     (7, 6, 5)),
    (r"\b(?:buildCudaEngine|setFp16Mode|setInt8Mode|IPluginFactory|IPluginExt|addPluginExt)\b",
     "calls that TensorRT 8 removed", (7, 6, 5)),
    (r"\bpublic\s+(?:nvinfer1::)?IPlugin\b", "IPlugin", (5, 6, 7)),
    (r"\b(?:setMaxWorkspaceSize|buildEngineWithConfig|getBindingIndex|getNbBindings|enqueueV2|"
     r"executeV2|getBindingDimensions|setBindingDimensions|addFullyConnected|kSTRICT_TYPES)\b",
     "calls that TensorRT 10 removed", (8, 7)),
    (r"\bnoexcept\s+override\b", "noexcept methods", (8, 10, 11)),
)  # fmt: skip
"""Pattern of a source, words for it, the releases that it speaks for, likeliest first."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of compiling for one release.

    Attributes:
        major: of the release.
        errors: messages of the compiler; none: it compiles.
        output: what it said of the first file that it refuses.
        refused: files that do not compile.
        command: of the first of them.
    """

    major: int
    errors: int
    output: str = ""
    refused: tuple[Path, ...] = ()
    command: str = ""


def is_chosen(define: Sequence[str], flags: Sequence[str]) -> bool:
    """Whether the caller names the release."""
    return any(text.removeprefix("-D").startswith(MACRO) for text in (*define, *flags))


def texts_of(sources: Sequence[Path]) -> Iterator[str]:
    """The sources, and the headers beside them that they include."""
    seen: set[Path] = set()
    waiting = list(sources)
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file() or path.suffix in (".o", ".a"):
            continue
        seen.add(path)
        text = path.read_text("utf-8", "replace")
        yield text
        waiting += [path.parent / name for name in _INCLUDE.findall(text)]


def evidence_of(text: str) -> tuple[list[int], list[str]]:
    """Releases that a source speaks for, likeliest first, and why.

    A source without any word of TensorRT has none.
    """
    if not _USES.search(text):
        return [], []
    majors: list[int] = []
    reasons: list[str] = []
    for pattern, words, spoken_for in _EVIDENCE:
        if re.search(pattern, text):
            reasons.append(words)
            majors += spoken_for
    return list(dict.fromkeys([*majors, *MAJORS])), reasons


def tried(
    text: str, command_for: Callable[[int], Sequence[tuple[Path, Sequence[str]]]]
) -> list[Attempt]:
    """Compile for one release after the other, without a result, until one takes all sources.

    Files that the usual release takes are read once one takes the others. Where the compiler says
    the same for the usual one, 8 and 7, whose interfaces have least in common, no more are tried;
    none where a header is missing, which no release has.

    Args:
        text: of all sources.
        command_for: the commands that compile them for a release.

    Returns:
        the attempts, that for the usual release first; only the last may be without errors.
    """
    attempts = [attempt(USUAL, command_for(USUAL))]
    refused = attempts[0].refused
    lacks = attempts[0].errors == 1 and "No such file or directory" in attempts[0].output
    for major in evidence_of(text)[0] if refused and not lacks else ():
        if major == USUAL:
            continue
        commands = command_for(major)
        one = attempt(major, [c for c in commands if c[0] in refused])
        if not one.errors:
            one = attempt(major, [c for c in commands if c[0] not in refused])
        attempts.append(one)
        same = {a.major for a in attempts if a.output == attempts[0].output}
        if not one.errors or same >= {USUAL, 8, 7}:
            break
    return attempts


def attempt(major: int, commands: Sequence[tuple[Path, Sequence[str]]]) -> Attempt:
    """Let the compiler read sources for one release."""
    errors, output, shown = 0, "", ""
    refused: list[Path] = []
    for source, command in commands:
        done = subprocess.run(
            [*command, _FRONT_END if "-ccbin" in command else "-fsyntax-only"],
            capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        if done.returncode:
            errors += max(1, len(re.findall(r"\berror:", done.stderr)))
            if not refused:
                output, shown = done.stderr, shlex.join(command)
            refused.append(source)
    return Attempt(major, errors, output, tuple(refused), shown)


def notice_of(major: int, text: str, source: Path) -> Finding:
    """The notice that a release was taken."""
    reasons = evidence_of(text)[1]
    why = f" ({', '.join(reasons)})" if reasons else ""
    words = f"compiled as for TensorRT {major}{why}: with {USUAL}'s interface it does not "
    words += f"compile; -D {MACRO}={major} says so from the start"
    return Finding("compiled-generation", "info", words, str(source), {"major": major})
