"""Every page as Markdown beside its HTML, and `llms.txt`, which lists them for programs that read.

The pages are written in Markdown, so the file is the page's source; what a directive would collect
from the code (classes, functions) is written out.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from docs._ext.searching import description

_AUTODOC = re.compile(r"^\.\. auto(\w+):: ([\w.]+)$")


def _python_entry(line: str) -> str:
    """Return a class or function as a heading with its signature and docstring."""
    match = _AUTODOC.match(line.strip())
    if match is None:
        return ""
    kind, name = match.groups()
    obj = resolve_name(name)
    try:
        signature = "" if kind == "module" else str(inspect.signature(obj))
    except (TypeError, ValueError):
        signature = ""
    text = inspect.getdoc(obj) or ""
    return f"### `{name}{signature}`\n\n{text}\n"


def plain(source: str) -> str:
    """Return a page without front matter and without directives that only a builder reads."""
    text = re.sub(r"\A---\n.*?\n---\n+", "", source, flags=re.S)
    text = re.sub(r"```\{toctree\}\n.*?```\n", "", text, flags=re.S)
    text = re.sub(
        r"```\{eval-rst\}\n(.*?)```\n",
        lambda block: "\n".join(filter(None, map(_python_entry, block[1].splitlines()))),
        text,
        flags=re.S,
    )
    text = re.sub(r"(?m)^<!--.*?-->\n|^\([\w-]+\)=\n", "", text)
    return re.sub(r"\n{3,}", "\n\n", text).lstrip()


def _page_text(app: Sphinx, name: str) -> str:
    source = Path(app.env.doc2path(name))
    text = source.read_text("utf-8")
    included = re.search(r"```\{include\} (\S+)\n", text)
    return (source.parent / included[1]).read_text("utf-8") if included else plain(text)


def _write(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.name != "html":
        return
    lines = [f"# {app.config.project}", "", f"> {app.config.html_short_title}", ""]
    base = app.config.html_baseurl
    for name in _in_order(app):
        target = Path(app.outdir, f"{name}.md")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_page_text(app, name), encoding="utf-8")
        doctree = app.env.get_doctree(name)
        title = next(doctree.findall(nodes.title)).astext()
        about = description(doctree)
        lines.append(f"- [{title}]({base}{name}.md)" + (f": {about}" if about else ""))
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _in_order(app: Sphinx) -> list[str]:
    """Return the pages as the navigation has them."""
    names: list[str] = []

    def walk(name: str) -> None:
        if name not in names:
            names.append(name)
            for child in app.env.toctree_includes.get(name, ()):
                walk(child)

    walk(app.config.root_doc)
    return names


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
