"""`onnx_ir` without SymPy, which costs more to import than all else that reading a model needs.

The library imports it for arithmetic with symbolic axes, which Headrace does not do. Here SymPy is
imported when somebody does. `from headrace.network.ir import ir` stands for `import onnx_ir as ir`.
"""

from __future__ import annotations

import importlib
import logging
import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx_ir
    import onnx_ir as ir
    from onnx import NodeProto


__all__ = ["ir", "node_from_proto"]

# What it grumbles about is judged here or by the runtime; nobody configured logging for it.
logging.getLogger("onnx_ir").addHandler(logging.NullHandler())

# The second uses the first while it is imported; only the arithmetic uses the second.
_LATER = ("sympy", "onnx_ir._symbolic_shapes")


_leaving = threading.Lock()


class _Later(ModuleType):
    """Stands for a module until something of it is asked for.

    The import system asks for its path and more: the thread that put it there learns that there is
    none, any other, which knows nothing of it, gets those of the module.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__dict__["_thread"] = threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and threading.get_ident() == self._thread:
            raise AttributeError(name)
        self.leave()
        return getattr(importlib.import_module(self.__name__), name)

    def leave(self) -> None:
        """Put the module itself in place: later imports get it."""
        with _leaving:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]


def _imported() -> ModuleType:
    if not {"onnx_ir", *_LATER} & sys.modules.keys():
        later = [_Later(name) for name in _LATER]
        sys.modules.update({module.__name__: module for module in later})
        try:
            return importlib.import_module("onnx_ir")
        except ImportError:  # another version of it, which takes no stand-in
            for name in [n for n in sys.modules if n.partition(".")[0] == "onnx_ir"]:
                del sys.modules[name]
        finally:
            for module in later:
                module.leave()
    return importlib.import_module("onnx_ir")


if not TYPE_CHECKING:
    ir = _imported()


def node_from_proto(node: NodeProto) -> onnx_ir.Node:
    """The `ir.Node` of a NodeProto by itself, its inputs without types.

    The library calls a model invalid, in a log, whose values are not declared: here they are.
    """
    import onnx

    alone = onnx.GraphProto(node=[node])
    for name in filter(None, dict.fromkeys(node.input)):
        alone.input.add(name=name)
    graph = ir.serde.deserialize_graph(alone)
    ir_node = graph[0]
    graph.remove(ir_node)
    return ir_node
