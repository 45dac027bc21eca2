"""The package's files as trees, read and walked once by each process of the tests."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import headrace
from tests.session import without_collections

SOURCE = Path(headrace.__file__).parent
Node = TypeVar("Node", bound=ast.AST)


@cache
def modules() -> dict[str, ast.Module]:
    """Every file of the package, by its path in it."""
    files = sorted(SOURCE.rglob("*.py"))
    with without_collections():
        trees = {str(p.relative_to(SOURCE)): ast.parse(p.read_text()) for p in files}
        gc.freeze()  # they stay, and later collections skip them
    return trees


@cache
def _nodes() -> dict[type[ast.AST], list[tuple[str, ast.AST]]]:
    """Path and node, by the node's type, of all files."""
    nodes: dict[type[ast.AST], list[tuple[str, ast.AST]]] = defaultdict(list)
    trees = modules()
    with without_collections():
        for name, tree in trees.items():
            for node in ast.walk(tree):
                nodes[type(node)].append((name, node))
        gc.freeze()
    return nodes


def nodes_of(kind: type[Node]) -> Iterator[tuple[str, Node]]:
    """Return the path and the node, for all nodes of one type."""
    for name, node in _nodes()[kind]:
        assert isinstance(node, kind)
        yield name, node
