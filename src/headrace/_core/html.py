"""Small, safe pieces of HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from headrace._core.text import shortened

if TYPE_CHECKING:
    from headrace._core.findings import Finding

_MAX_TEXT = 300
_MAX_NOTICES = 12


def safe(value: object) -> str:
    """Text that is only text: escaped, without lone surrogates, at most 300 characters."""
    text = str(value).encode(errors="replace").decode()
    return escape(shortened(text, _MAX_TEXT))


def paragraph(text: object) -> str:
    """A line of text."""
    return f"<p>{safe(text)}</p>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, most: int = 40) -> str:
    """A table of at most `most` rows; empty without rows."""
    shown = list(rows)
    body = [
        "<tr>" + "".join(f"<td>{safe(cell)}</td>" for cell in row) + "</tr>" for row in shown[:most]
    ]
    if not body:
        return ""
    if len(shown) > most:
        body.append(f'<tr><td colspan="{len(head)}">and {len(shown) - most} more</td></tr>')
    top = "".join(f"<th>{safe(name)}</th>" for name in head)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names with their values, one below the other; those without a value are left out."""
    rows = [(name, value) for name, value in pairs if value not in (None, "", ())]
    body = "".join(f"<tr><th>{safe(name)}</th><td>{safe(value)}</td></tr>" for name, value in rows)
    return f"<table><tbody>{body}</tbody></table>" if body else ""


def notice_list(notices: Iterable[Finding]) -> str:
    """Notices, warnings first, at most 12."""
    findings = sorted(dict.fromkeys(notices), key=lambda n: n.level != "warning")
    items = [
        f"<li>{'<b>warning:</b> ' if n.level == 'warning' else ''}{safe(n)}</li>"
        for n in findings[:_MAX_NOTICES]
    ]
    if len(findings) > _MAX_NOTICES:
        items.append(f"<li>and {len(findings) - _MAX_NOTICES} more</li>")
    return f"<ul>{''.join(items)}</ul>" if items else ""
