"""How many words people wrote for the pages: `python -m docs._ext.words` lists them by page.

Not counted: pages and parts that scripts write from the code, examples of code and commands, which
tests run, and the words of a page's front matter.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
LIMIT = 60_000
# Written whole by scripts, or included from elsewhere.
WRITTEN = {
    "app-keys.md", "conformance.md", "cpp-methods.md", "elements.md", "exporter-forms.md",
    "lint-rules.md", "operators.md", "package-models.md", "pyds-names.md", "standard-plugins.md",
    "tracker-files.md",
}  # fmt: skip
_PARTS = (
    r"\A---\n.*?\n---\n",
    r"<!-- keys: .*?<!-- keys end -->",
    r"<!-- options: .*",
    r"<!-- ([a-z ]+) -->.*?<!-- /\1 -->",
    r"<!-- names by release -->.*?<!-- end of names -->",
    r"(?m)^(?: *)(`{3,}).*?^ *\1$",
    r"(?m)^    .*\n",
)


def words(text: str) -> int:
    """Count the words of one page that people wrote."""
    for part in _PARTS:
        text = re.sub(part, "", text, flags=re.S if "(?m)^    " not in part else re.M)
    return len(re.findall(r"[A-Za-z0-9][^\s|]*", text))


def by_page() -> dict[str, int]:
    """Return the count of each page, by its name."""
    pages = sorted(DOCS.rglob("*.md"))
    others = ("api", "_build")  # written from docstrings, and what `make docs` built
    own = [p for p in pages if p.name not in WRITTEN and p.relative_to(DOCS).parts[0] not in others]
    return {p.relative_to(DOCS).as_posix(): words(p.read_text("utf-8")) for p in own}


if __name__ == "__main__":
    counts = by_page()
    for name, count in sorted(counts.items(), key=lambda item: item[1]):
        print(f"{count:6} {name}")
    print(f"{sum(counts.values()):6} in all")
