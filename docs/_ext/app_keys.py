"""The page docs/app-keys.md: what becomes of every key of deepstream-app."""

from __future__ import annotations

from collections import Counter

from headrace.config.app.keys import APP_GROUPS, AppGroup

_HEAD = """# Keys of deepstream-app configs

Every key that deepstream-app and test5 read in a release from 3.0 to 9.1, and what becomes of it in
`headrace run FILE`. `make schema` writes this page from the table that the reader uses.

- **applied**: it acts as in the original.
- **approximated**: it acts, and a finding `key-approximated` says what differs.
- **named**: it has no effect, and a finding says why; a warning when results or outputs differ by
  it, which `--strict` refuses.

An unknown key is a warning with the nearest known one.
"""


def _row(group: AppGroup, name: str, state: str) -> str:
    key = group.key(name)
    if state == "named" or key is None:
        reason = group.unused.get(name) or group.reason
        words = "colour of boxes" if reason is None else reason.text
    else:
        words = group.near.get(name) or key.meaning or key.expected()
    return f"| `{name}` | {state} | {words} |"


def page() -> str:
    """Return the page."""
    counts = Counter(state for group in APP_GROUPS for state in group.states().values())
    parts = [_HEAD, "Keys: " + ", ".join(f"{n} {state}" for state, n in counts.most_common()) + "."]
    for group in APP_GROUPS:
        lines = [f"\n## `[{group.name}]`\n", "| Key | State | Values, or why |", "|---|---|---|"]
        lines += [_row(group, name, state) for name, state in group.states().items()]
        parts.append("\n".join(lines))
    return "\n".join(parts) + "\n"
