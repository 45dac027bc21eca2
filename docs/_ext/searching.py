"""Words by which a page is found: its title, and what its front matter lists under `search`.

Sphinx ranks a page whose index entry is the query above pages that only contain the words, so each
title and each phrase becomes one. The single words become the page's keywords, which the full-text
search reads: a query of several words finds the page, too.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

# Pages that scripts write whole.
GENERATED = {
    "app-keys": "deepstream-app keys, source groups, sink groups",
    "elements": "table of elements, gstreamer equivalents, where is nvdsosd",
    "tracker-files": "nvdcf, nvdeepsort, nvsort, tracker config, ll-config-file",
    "api/index": "all classes, public api, autodoc",
    "conformance": "equality with deepstream, differences to nvinfer, bit exact",
    "exporter-forms": "exporters, export formats, supported exports",
    "lint-rules": "rules, list of messages, warning codes",
    "operators": "onnx operators, opset, supported operators",
    "pyds-names": "pyds api, python bindings, nvds_",
    "standard-plugins": "efficientnms plugin, batchednms, libnvinfer_plugin, roialign",
}


def phrases(name: str, metadata: dict[str, Any]) -> list[str]:
    """Return what a page wants to be found by, in lower case."""
    text = str(metadata.get("search", GENERATED.get(name, "")))
    return [phrase.strip().lower() for phrase in text.split(",") if phrase.strip()]


def description(document: nodes.document, limit: int = 160) -> str:
    """Return the first sentences of a page, for indexes of pages."""
    for paragraph in document.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            text = re.sub(r"\s+", " ", paragraph.astext())
            if len(text) <= limit:
                return text
            whole = text[:limit].rsplit(". ", 1)
            return f"{whole[0]}." if len(whole) == 2 else text[:limit].rsplit(" ", 1)[0] + " …"
    return ""


def _describe(app: Sphinx, document: nodes.document) -> None:
    name = app.env.current_document.docname
    title = next(document.findall(nodes.title), None)
    if title is None:
        return
    wanted = list(dict.fromkeys([title.astext().lower(), *phrases(name, app.env.metadata[name])]))
    section = title.parent
    entries = [("single", phrase, section["ids"][0], "main", None) for phrase in wanted]
    section.insert(1, addnodes.index(entries=entries))
    words = {word for phrase in wanted for word in re.findall(r"\w+", phrase)}
    _insert_meta(document, "keywords", ", ".join(sorted(words)))


def _insert_meta(document: nodes.document, name: str, content: str) -> None:
    meta = nodes.meta("", name=name, content=content)
    meta["lang"] = "en"
    document.insert(0, meta)


def _describe_resolved(app: Sphinx, document: nodes.document, name: str) -> None:
    """Add the description when links have the titles of what they name."""
    _insert_meta(document, "description", description(document))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", _describe)
    app.connect("doctree-resolved", _describe_resolved)
    return {"parallel_read_safe": True}
