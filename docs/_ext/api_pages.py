"""Pages of docs/api: the names of each public package, those of `import headrace` by a link."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

# Public packages, and the page that shows them at work.
FACES = {
    "headrace.config": "configuration",
    "headrace.infer": "python",
    "headrace.meta": "tables",
    "headrace.media": "sources-and-sinks",
    "headrace.media.draw": "drawing",
    "headrace.pipeline": "pipelines",
    "headrace.pipeline.track": "tracking",
    "headrace.pipeline.analytics": "analytics",
    "headrace.live": "live",
    "headrace.batches": "batch",
    "headrace.custom": "custom-libraries",
    "headrace.engine": "engines",
    "headrace.network": "models",
    "headrace.plugins": "plugins",
    "headrace.plugins.standard": "standard-plugins",
    "headrace.trt": "trt",
    "headrace.diagnose.evaluate": "cli/eval",
    "headrace.diagnose.explain": "cli/explain",
    "headrace.diagnose.repair": "cli/repair",
    "headrace.diagnose.compare": "cli/compare",
}


def page_name(face: str) -> str:
    """Return the page of a face: `headrace.media.draw` is in api/media-draw."""
    return face.removeprefix("headrace.").replace(".", "-")


def listed_by_hand() -> dict[int, str]:
    """Return the ids of what the reference page itself documents, with their names there."""
    text = (Path(__file__).parents[1] / "reference.md").read_text("utf-8")
    names = re.findall(r"^\.\. auto(?:class|function|exception):: (\S+)", text, re.M)
    return {id(resolve_name(name)): name for name in names}


def page(face: str, documented: dict[int, str]) -> str:
    """Return the page of one package; what it documents is added to `documented`."""
    module = resolve_name(face)
    lines = [f"# {face}", "", f"Shown at work: [](../{FACES[face]}.md).", ""]
    elsewhere, modules, entries, values = [], [], [], []
    for name in module.__all__:
        obj = getattr(module, name)
        if inspect.ismodule(obj):
            modules.append(f"`{name}`")
        elif not (inspect.isclass(obj) or inspect.isroutine(obj)):
            values.append(f"`{name}`")
        elif id(obj) in documented:
            elsewhere.append(f"{{py:obj}}`{name} <{documented[id(obj)]}>`")
        else:
            documented[id(obj)] = f"{face}.{name}"
            entries += _entry(f"{face}.{name}", obj)
    for head, names in (
        ("Documented with `import headrace` or another package", elsewhere),
        ("Modules", modules),
        ("Constants and types of arguments", values),
    ):
        if names:
            lines += [_wrapped(f"{head}: {', '.join(names)}."), ""]
    if entries:
        lines += ["```{eval-rst}", *entries, "```", ""]
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _entry(name: str, obj: Any) -> list[str]:
    if not inspect.isclass(obj):
        return [f".. autofunction:: {name}"]
    kind = "exception" if issubclass(obj, BaseException) else "class"
    return [f".. auto{kind}:: {name}", "   :members:"]


def index() -> str:
    """Return the page that lists the others."""
    head = (
        "# Names of each package\n\n"
        "`import headrace` has what most programs need: [](../reference.md). Here is the rest of\n"
        "what is public: each package's `__all__`.\n\n```{toctree}\n:maxdepth: 1\n\n"
    )
    return head + "".join(f"{page_name(face)}\n" for face in FACES) + "```\n"


def pages() -> dict[str, str]:
    """Return all pages of docs/api by file name."""
    documented = listed_by_hand()
    return {"index.md": index()} | {f"{page_name(f)}.md": page(f, documented) for f in FACES}
