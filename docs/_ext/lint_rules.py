"""docs/lint-rules.md: every rule of `headrace lint`, each with a wrong and a right example."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from headrace.diagnose.lint.catalogue import Example, LintRule, all_codes, all_rules
from tests.diagnose.lint.setups import BASES, split_line

_TEXT = """\
# Rules of headrace lint

<!-- written by make schema -->

Every rule that [`headrace lint`](cli/lint.md), [`headrace show`](cli/show.md) and `headrace run`
know. The id stands in messages, in JSON (`code`) and in SARIF; `headrace lint --explain ID` prints
a rule. The severity is the usual one: whatever stops a run is an error. *In a run* marks the rules
of the [plausibility watch](watch.md) that need images. [Other codes](#other-codes) are those of
findings that no rule is about. Codes are stable; sentences are not.

The examples are lines of a config that is right otherwise; a test runs both forms of each.
"""
_AREAS = {
    "form": "Form of the files",
    "values": "Values",
    "classes": "Classes and labels",
    "boxes": "Thresholds and clustering",
    "input": "The network's input",
    "parser": "Parser",
    "library": "Custom library",
    "model": "Model",
    "engine": "Engine and precision",
    "pipeline": "Pipelines",
    "target": "Generations of the original",
    "run": "In a run",
}


def page() -> str:
    """Return the whole page as Markdown."""
    parts = [_TEXT]
    for area, rules in groupby(all_rules().values(), key=lambda rule: rule.area):
        parts.append(f"## {_AREAS[area]}\n")
        parts += [_section(rule) for rule in rules]
    others = {code: text for code, text in all_codes().items() if code not in all_rules()}
    rows = [f"| `{code}` | {text} |" for code, text in others.items()]
    parts += ["## Other codes\n", "| Code | Meaning |", "|---|---|", *rows, ""]
    return "\n".join(parts)


def _section(rule: LintRule) -> str:
    marks = [rule.severity] + (["in a run"] if rule.found == "run" else [])
    lines = [f"### {rule.id}", "", *_wrapped(f"*{', '.join(marks)}.* {rule.summary} {rule.why}")]
    lines += ["", *_wrapped(f"**Fix:** {rule.fix}")]
    if rule.example is not None:
        lines += _example(rule.example)
    return "\n".join([*lines, ""])


def _wrapped(text: str, width: int = 99) -> list[str]:
    lines, line = [], ""
    for word in text.replace("*cov*", "`cov`").replace("*bbox*", "`bbox`").split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line]


def _example(example: Example) -> Iterator[str]:
    base = BASES[example.base]
    if example.target:
        yield from ("", f"With `--target {example.target}`:")
    wrong = _lines(example, example.wrong)
    right = list(example.right) or _right(example)
    if example.edit:
        wrong += ["", *example.edit[1].split("\n")] if wrong else example.edit[1].split("\n")
        right += example.edit[0].split("\n")
    for name, text in example.files.items():
        shown = text.removesuffix("\n").replace("\r", "␍").replace("\ufeff", "␣BOM␣").split("\n")
        wrong += [f"# {name}", *shown]
        if name in base.files:
            right += [f"# {name}", *base.files[name].removesuffix("\n").split("\n")]
    for name, made in example.models.items():
        wrong.append(f"# {name} is {_model(made)}")
    for title, lines in (("Wrong", wrong), ("Right", right)):
        lines = [line.replace("\ufeff", "␣BOM␣") for line in lines]
        if lines:
            yield from ("", f"{title}:", "", *(f"    {line}".rstrip() for line in lines))


def _model(name: str) -> str:
    return f"a model with this fault ({name.removesuffix('.onnx').replace('_', ' ')})"


def _lines(example: Example, lines: tuple[str, ...]) -> list[str]:
    """The lines as a file has them, each below its group where that is not [property]."""
    shown, last = [], ""
    for line in lines:
        file, key, value = split_line(line)
        group, _, own = key.rpartition(".")
        title = f"{file}: [{group or 'property'}]" if file else f"[{group}]" if group else ""
        if title and title != last:
            shown.append(title)
            last = title
        shown.append(f"# no {own}" if value is None else f"{own}={value}")
    return shown


def _right(example: Example) -> list[str]:
    """The lines that stand in the base in the place of the wrong ones."""
    base = BASES[example.base]
    last = next(reversed(base.configs))
    lines = []
    for line in example.wrong:
        file, key, _ = split_line(line)
        value = base.configs[file or last].get(key)
        place = f"{file}:" if file else ""
        lines.append(f"-{key}" if value is None else f"{place}{key}={value}")
    return _lines(example, tuple(lines))
