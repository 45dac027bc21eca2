"""What both readers of YAML stand on: events, where they are, and what makes a file malformed.

Events instead of nodes: nothing is constructed, so no tag runs code, and neither deep nesting nor
aliases of aliases can cost memory or stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from noria._core.text import quoted
from noria.config.document import Document

MAX_DEPTH = 50  # a config is two deep; the scanner of PyYAML is slow on thousands
NULLS = ("", "~", "null", "Null", "NULL")

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Malformed(Exception):
    """What no reader takes, in a line that is counted from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def parse_events(data: bytes) -> Iterator[Any]:
    """The events of a YAML text, of all its documents.

    Raises:
        yaml.YAMLError, UnicodeError: on the way; see `refusing`.
    """
    return yaml.parse(data, Loader=_LOADER)


def line_of(event: Any) -> int:
    """The line an event begins in, counted from 1."""
    line: int = event.start_mark.line
    return line + 1


@contextmanager
def refusing(data: bytes, document: Document) -> Iterator[None]:
    """Let the document refuse what is malformed in `data`, read inside."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(part for part in (error.context, error.problem) if part)
        document.refuse(
            mark.line + 1 if mark else 1, f"malformed YAML: {quoted(reason, limit=200)}"
        )
    except Malformed as error:
        document.refuse(error.line, f"malformed YAML: {error}")
    except (yaml.YAMLError, UnicodeError) as error:
        # the reader's own errors (bad UTF-8, control characters) know an offset instead of a line
        line = data.count(b"\n", 0, getattr(error, "position", 0) or 0) + 1
        reason = str(getattr(error, "reason", error))
        document.refuse(line, f"malformed YAML: {quoted(reason, limit=200)}", "UTF-8 text")
