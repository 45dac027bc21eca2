"""Write the options of a run into the functions that take them: arguments, and their documentation.

usage: run_options.py [--check]

Each field of `RunOptions` names the functions; their signatures and docstrings lie in the source,
so that type checkers, editors and readers see them. With --check nothing is written, and the exit
code is 1 if something would be.
"""

import ast
import sys
import textwrap
from dataclasses import MISSING, fields
from pathlib import Path

from headrace.infer.run_options import KEY_OPTIONS, RunOptions

SOURCE = Path(__file__).resolve().parent.parent / "src" / "headrace"
FUNCTIONS = {  # file, and defaults that are not those of the fields
    "open_pipeline": ("pipeline/opening.py", {}),
    "from_config": ("infer/inferencer.py", {"streams": 1}),
    "batch": ("batches/running.py", {}),
    "evaluate": ("diagnose/evaluate/evaluation.py", {}),
    "compare": ("diagnose/compare/run.py", {}),
}
KEYS = {"conf": "float | None = None", "labels": "str | PathLike[str] | None = None"}
WIDTH = 100


def arguments(function: str) -> dict[str, tuple[str, str]]:
    """Return annotation with default, and documentation, of each argument that is written."""
    own = FUNCTIONS[function][1]
    written = {}
    for field in fields(RunOptions):
        option = field.metadata["option"]
        if function in option.functions:
            assert field.default is not MISSING
            default = own.get(field.name, field.default)
            default = f'"{default}"' if isinstance(default, str) else default
            written[field.name] = (f"{field.type} = {default}", option.text)
    if function in KEY_OPTIONS["keys"].functions:
        for name, text in KEYS.items():
            written[name] = (text, KEY_OPTIONS[name].text)
        written["**keys"] = ("Any", KEY_OPTIONS["keys"].text)
    return written


def rewritten(text: str, function: str) -> str:
    """Return a module's text with the arguments of one function as they are declared."""
    lines = text.splitlines()
    node = next(
        n
        for n in ast.walk(ast.parse(text))
        if isinstance(n, ast.FunctionDef) and n.name == function
    )
    written = arguments(function)
    docstring = node.body[0]
    assert isinstance(docstring, ast.Expr)
    lines[docstring.lineno - 1 : docstring.end_lineno] = _documented(
        lines[docstring.lineno - 1 : docstring.end_lineno], written
    )
    names = {name.removeprefix("**") for name in written}
    taken = [a for a in (*node.args.kwonlyargs, node.args.kwarg) if a and a.arg in names]
    for argument in reversed(taken):
        del lines[argument.lineno - 1]
    end = next(i for i in range(node.lineno, len(lines)) if lines[i].lstrip().startswith(") ->"))
    indent = " " * (node.col_offset + 4)
    lines[end:end] = [f"{indent}{name}: {kind}," for name, (kind, _) in written.items()]
    return "\n".join(lines) + "\n"


def _documented(lines: list[str], written: dict[str, tuple[str, str]]) -> list[str]:
    """Put the texts of the arguments at the end of a docstring's `Args`, without earlier ones."""
    start = next(i for i, line in enumerate(lines) if line.strip() == "Args:") + 1
    end = next(i for i in range(start, len(lines)) if not lines[i].strip())
    indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
    kept, ours = [], False
    for line in lines[start:end]:
        if not line.startswith(f"{indent} "):
            ours = line.strip().partition(":")[0] in {name.removeprefix("**") for name in written}
        kept += [] if ours else [line]
    for name, (_, text) in written.items():
        entry = f"{name.removeprefix('**')}: {text}"
        kept += textwrap.wrap(
            entry, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ",
            break_on_hyphens=False, break_long_words=False,
        )  # fmt: skip
    return [*lines[:start], *kept, *lines[end:]]


def main(check: bool) -> int:
    stale = []
    for function, (name, _) in FUNCTIONS.items():
        path = SOURCE / name
        text = path.read_text()
        new = rewritten(text, function)
        if new != text:
            stale.append(f"{name}: {function}")
            if not check:
                path.write_text(new)
    print(*stale, sep="\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
