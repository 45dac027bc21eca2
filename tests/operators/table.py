"""Write docs/operators.md: `python -m tests.operators.table docs/operators.md`."""

from __future__ import annotations

import sys
import textwrap
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import onnx

from headrace.engine.backends import get_backend
from tests.operators.harness import RUNTIMES, Outcome, cases, judge

KINDS = {
    "type": "an input or output of the case is no tensor of numbers that a plan can carry "
    "(a sequence, an optional, strings, or a type of 8 bits and less that NumPy has not)",
    "refused": "the runtime refuses the model, with headrace and without",
    "values": "the runtime computes other values, with headrace and without",
    "ours": "the runtime alone passes: a fault of headrace",
}
ABOUT = (
    "Which of ONNX's own operator tests pass through Headrace's plans and sessions, on each "
    "runtime "
    "for CPUs. Made by `make operators`; measured with onnx {onnx}, {runtimes}."
)
HEAD = """# Operators

{about}

| | {names} |
|---|{rule}|
"""


def page(outcomes: dict[str, list[Outcome]]) -> str:
    versions = ", ".join(f"{name} {get_backend(name).version()}" for name in outcomes)
    text = HEAD.format(
        about=_wrapped(ABOUT.format(onnx=onnx.__version__, runtimes=versions)),
        names=" | ".join(outcomes),
        rule="---:|" * (len(outcomes) - 1) + "---:",
    )
    counts = {name: Counter(o.kind for o in found) for name, found in outcomes.items()}
    text += _row("tests", (len(found) for found in outcomes.values()))
    text += _row("pass", (c["pass"] for c in counts.values()))
    for kind, meaning in KINDS.items():
        text += _row(meaning, (c[kind] for c in counts.values()))
    for name, found in outcomes.items():
        text += f"\n## {name}\n\n" + _operators(found)
    return text


def _row(title: str, numbers: Iterable[int]) -> str:
    return f"| {title} | {' | '.join(map(str, numbers))} |\n"


def _operators(found: list[Outcome]) -> str:
    by_operator: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        by_operator[outcome.operator].append(outcome)
    whole = sorted(
        name for name, list_ in by_operator.items() if all(o.kind == "pass" for o in list_)
    )
    text = _wrapped(f"Every test passes of {len(whole)} operators: {', '.join(whole)}.") + "\n\n"
    text += "| operator | pass | of | why the others do not |\n|---|---:|---:|---|\n"
    for name in sorted(set(by_operator) - set(whole)):
        list_ = by_operator[name]
        reasons = Counter(f"{o.kind}: {o.reason}" for o in list_ if o.kind != "pass")
        shown = [f"{_plain(reason)} ({count})" for reason, count in reasons.most_common(4)]
        if len(reasons) > 4:
            shown.append(f"{len(reasons) - 4} reasons more")
        passed = sum(o.kind == "pass" for o in list_)
        text += f"| {name} | {passed} | {len(list_)} | {'; '.join(shown)} |\n"
    return text


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _plain(text: str) -> str:
    """Text that is no Markdown."""
    return text.replace("\\", "").replace("|", "/").replace("`", "'").replace("<", "&lt;")


def main() -> None:
    warnings.simplefilter("ignore")
    outcomes = {runtime: [judge(case, runtime) for case in cases()] for runtime in RUNTIMES}
    Path(sys.argv[1]).write_text(page(outcomes))
    ours = [o for found in outcomes.values() for o in found if o.kind == "ours"]
    sys.exit("\n".join(map(str, ours)) or 0)


if __name__ == "__main__":
    main()
