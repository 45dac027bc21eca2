"""docs/conformance.md: how close Headrace is to the original, key by key and rule by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from docs._ext.conformance_table import APPROXIMATE, BEHAVIOURS, PROOFS, REMARKS, Level
from headrace.config.key import Key
from headrace.config.keys import CLASS_ROWS, PROPERTY_ROWS

_INTRO = """\
# Conformance

<!-- written by make schema -->

How Headrace's results compare with those of the original element of generation 9.1, and what shows
it. The proofs are conformance cases (`PRE-001`), run by `tests/conformance`, or files of tests
where no case can show it. Cases from elsewhere run too:

    HEADRACE_CONFORMANCE_CASES=cases.json pytest tests/conformance

| | means |
|---|---|
| exact | the same numbers and the same metadata, as far as the original is published |
| approximate | the same in kind; *How* says where it differs |
| deviates | the original's behaviour is undefined or harmful; *How* says what happens here |
| not applicable | there is nothing it could act on here; a notice says so when a file sets it |
| not yet | read and checked, without effect; a warning says so |
"""


def level_of(key: Key) -> tuple[Level, str]:
    """Return how close a key is to the original, and a remark about that."""
    if key.reason:
        return "not applicable", key.reason
    if key.legacy:
        said = f"read as {key.legacy}" if key.acts else "nothing reads it since generation 3"
        return ("exact" if key.acts else "not applicable"), said
    if not key.acts:
        return "not yet", ""
    if key.name in APPROXIMATE:
        return "approximate", APPROXIMATE[key.name]
    remark = REMARKS.get(key.name, "")
    return "exact", f"Headrace's own; {remark}".rstrip("; ") if key.extension else remark


def page() -> str:
    """Return the whole page as Markdown."""
    parts = [_INTRO, "## Keys\n", _summary(level_of(k)[0] for k in (*PROPERTY_ROWS, *CLASS_ROWS))]
    for title, rows in (
        ("`[property]`", PROPERTY_ROWS),
        ("`[class-attrs-all]`, `[class-attrs-<n>]`", CLASS_ROWS),
    ):
        parts += [f"### {title}\n", _key_table(rows)]
    parts += ["## Behaviour\n", _summary(b.level for b in BEHAVIOURS)]
    lines = ["| Section | Rule | Headrace | How | Proof |", "|---" * 5 + "|"]
    lines += [_row(b.section, b.rule, b.level, b.how, _proofs(b.proofs)) for b in BEHAVIOURS]
    return "\n".join([*parts, "\n".join(lines) + "\n"])


def _key_table(rows: Iterable[Key]) -> str:
    lines = ["| Key | Headrace | How | Proof |", "|---" * 4 + "|"]
    for key in rows:
        lines.append(_row(f"`{key.name}`", *level_of(key), _proofs(PROOFS.get(key.name, ()))))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _proofs(proofs: Sequence[str]) -> str:
    return ", ".join(f"`{p.removeprefix('tests/')}`" if "/" in p else p for p in proofs)


def _summary(levels: Iterable[str]) -> str:
    counts = Counter(levels)
    order = ("exact", "approximate", "deviates", "not applicable", "not yet")
    return ", ".join(f"{counts[level]} {level}" for level in order if counts[level]) + ".\n"
