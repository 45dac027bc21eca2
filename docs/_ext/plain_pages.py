"""Every page as Markdown beside its HTML, and `llms.txt`, which lists them for programs that read.

The pages are written in Markdown, so the file is the page's source; what a builder would fill in
(classes and functions, titles of linked pages, lists of pages) is written out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from pkgutil import resolve_name
from posixpath import normpath
from typing import Any

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


def _list_of_pages(block: re.Match[str]) -> str:
    """Return a list of pages as links; nothing for one that only the navigation shows."""
    if ":hidden:" in block[1]:
        return ""
    return "".join(f"- []({name}.md)\n" for name in re.findall(r"(?m)^[\w/-]+$", block[1]))


def plain(source: str, title_of: Callable[[str], str]) -> str:
    """Return a page without front matter and without directives that only a builder reads.

    Args:
        source: of the page.
        title_of: returns the title of a link's target, for links without a text.
    """
    text = re.sub(r"\A---\n.*?\n---\n+", "", source, flags=re.S)
    text = re.sub(r"```\{toctree\}\n(.*?)```\n", _list_of_pages, text, flags=re.S)
    text = re.sub(r"\[\]\((\S+?)\)", lambda link: f"[{title_of(link[1])}]({link[1]})", text)
    text = re.sub(
        r"```\{eval-rst\}\n(.*?)```\n",
        lambda block: "\n".join(filter(None, map(_python_entry, block[1].splitlines()))),
        text,
        flags=re.S,
    )
    text = re.sub(r"(?m)^<!--.*?-->\n|^\([\w-]+\)=\n", "", text)
    return re.sub(r"\n{3,}", "\n\n", text).lstrip()


def _title(app: Sphinx, name: str, target: str) -> str:
    """Return the title of the page, or of its section, that a page links."""
    path, _, section = target.partition("#")
    linked = normpath(PurePosixPath(name).parent / path.removesuffix(".md")) if path else name
    if section:
        return str(app.env.metadata[linked]["myst_slugs"][section][2])
    return app.env.titles[linked].astext()


def _page_text(app: Sphinx, name: str) -> str:
    source = Path(app.env.doc2path(name))
    text = source.read_text("utf-8")
    included = re.search(r"```\{include\} (\S+)\n", text)
    if included:  # from the root, where links begin with docs/
        return (source.parent / included[1]).read_text("utf-8").replace("](docs/", "](")
    return plain(text, partial(_title, app, name))


def _write(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.name != "html":
        return
    lines = [f"# {app.config.project}", "", f"> {app.config.html_short_title}", ""]
    base = app.config.html_baseurl
    for name in _in_order(app):
        target = Path(app.outdir, f"{name}.md")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_page_text(app, name), encoding="utf-8")
        doctree = app.env.get_and_resolve_doctree(name, app.builder)
        title, about = app.env.titles[name].astext(), description(doctree)
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
