"""The table of clauses in docs/cli/check-plugin.md: the contract as the command names it."""

from __future__ import annotations

import re

from headrace.diagnose.plugin_check.clauses import CLAUSES


def rewritten(page: str) -> str:
    """Return a page with the table between its marks."""
    rows = [f"| `{name}` | {methods} | {text} |" for name, (methods, text) in CLAUSES.items()]
    table = "\n".join(["| clause | methods | contract |", "|---|---|---|", *rows])
    marks = re.compile(r"(<!-- clauses -->\n).*?(<!-- /clauses -->)", re.DOTALL)
    return marks.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", page)
