"""The structures of a batch in C: built when C code asks, and the truth of the batch from then on.

The tree lives as long as the batch. Structures of Python's keep their identity: they are views on
it. What is still referred to when the tree goes is read back into memory of Python's.
"""

from __future__ import annotations

import ctypes
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from ctypes import c_void_p
from functools import cache
from threading import RLock
from weakref import ref

from headrace.gstreamer.cmeta import data, native
from headrace.gstreamer.cmeta.flat import record_of
from headrace.gstreamer.cmeta.layout import structure
from headrace.gstreamer.cmeta.views import (
    Bound,
    CStruct,
    Value,
    bind,
    detach,
    is_view,
    new_view,
    view_class,
)
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.pyds.meta import (
    GList,
    MetaList,
    NvDsBatchMeta,
    NvDsClassifierMeta,
    NvDsDisplayMeta,
    NvDsFrameMeta,
    NvDsLabelInfo,
    NvDsObjectMeta,
    NvDsUserMeta,
)
from headrace.gstreamer.pyds.struct import Struct

# list -> class of its items, the words of the functions that add, remove and clear, whether a new
# one comes last.
_LISTS: dict[str, tuple[type[Struct], str, str, bool]] = {
    "frame_meta_list": (NvDsFrameMeta, "frame_meta", "batch", True),
    "batch_user_meta_list": (NvDsUserMeta, "user_meta", "batch", True),
    "obj_meta_list": (NvDsObjectMeta, "obj_meta", "frame", False),
    "display_meta_list": (NvDsDisplayMeta, "display_meta", "frame", False),
    "frame_user_meta_list": (NvDsUserMeta, "user_meta", "frame", False),
    "classifier_meta_list": (NvDsClassifierMeta, "classifier_meta", "object", False),
    "obj_user_meta_list": (NvDsUserMeta, "user_meta", "obj", False),
    "label_info_list": (NvDsLabelInfo, "label_info_meta", "classifier", False),
}
_OF: dict[type[Struct], tuple[str, ...]] = {
    NvDsBatchMeta: ("frame_meta_list", "batch_user_meta_list"),
    NvDsFrameMeta: ("obj_meta_list", "display_meta_list", "frame_user_meta_list"),
    NvDsObjectMeta: ("classifier_meta_list", "obj_user_meta_list"),
    NvDsClassifierMeta: ("label_info_list",),
}
_POOLS: dict[type[Struct], str] = {
    NvDsFrameMeta: "frame", NvDsObjectMeta: "obj", NvDsClassifierMeta: "classifier",
    NvDsLabelInfo: "label_info", NvDsDisplayMeta: "display", NvDsUserMeta: "user",
}  # fmt: skip
_HELD = 3  # references to an object that nobody else holds: the list, the loop's name, the call's


_Object = structure("NvDsObjectMeta")
_RECORD = record_of(NvDsObjectMeta)


@cache
def _add_records() -> Callable[..., None]:
    call: Callable[..., None] = native.call(
        "headrace_add_objects", c_void_p, ctypes.c_uint, ctypes.c_char_p, c_void_p
    )
    return call


class _Node(ctypes.Structure):
    """A node of GLib's list."""

    _fields_ = [("data", c_void_p), ("next", c_void_p), ("prev", c_void_p)]


class CList(MetaList):
    """A list in C as Python's elements see it: items in the order in which they were added."""

    __slots__ = ("_name", "_owner", "_tree")

    def __init__(self, tree: Callable[[], Tree | None], owner: Bound, name: str) -> None:
        self._tree, self._owner, self._name = tree, owner, name

    def _items(self) -> list[Value]:
        tree = self._tree()
        kind, _, _, is_last = _LISTS[self._name]
        addresses, node = [], getattr(self._owner, self._name)
        while tree is not None and node:
            cell = _Node.from_address(node)
            addresses.append(cell.data)
            node = cell.next
        if not is_last:
            addresses.reverse()
        return [] if tree is None else [tree.view(kind, address) for address in addresses]

    @property
    def first(self) -> GList | None:  # type: ignore[override]  # a slot there: here nodes are C's
        """The first node of a list of Python's with the same items."""
        copy = MetaList()
        for item in self._items():
            copy.append(item)
        return copy.first

    def _call(self, form: str, *arguments: int) -> None:
        _, meta, owner, _ = _LISTS[self._name]
        if (owner, meta) == ("object", "classifier_meta") and form.startswith("nvds_remove"):
            owner = "obj"
        elif (owner, meta, form[5:8]) == ("obj", "user_meta", "rem"):
            owner = "object"
        call = form.format(meta=meta, owner=owner)
        kinds = [c_void_p] * (1 + len(arguments))
        native.call(call, *kinds)(ctypes.addressof(self._owner), *arguments)

    def append(self, data: Value) -> None:
        """Add an item; one of Python's gets its structure in C first."""
        tree = self._tree()
        if tree is None:
            return
        address = tree.bound(data)
        parent = (data._c.parent or 0,) if self._name == "obj_meta_list" else ()
        self._call("nvds_add_{meta}_to_{owner}", address, *parent)

    def remove(self, data: Value) -> bool:
        """Take one item out; False if it is not there."""
        if not is_view(data) or not any(item is data for item in self._items()):
            return False
        tree, address = self._tree(), ctypes.addressof(data._c)
        if tree is not None:
            tree.read_back(data)
        self._call("nvds_remove_{meta}_from_{owner}", address)
        return True

    def clear(self) -> None:
        """Take all items out."""
        for item in self._items():
            self.remove(item)

    def __iter__(self) -> Iterator[Bound]:
        return iter(self._items())

    def __len__(self) -> int:
        return len(self._items())


class Tree:
    """The structures of one batch.

    Attributes:
        address: of the batch's structure.
    """

    def __init__(self, batch: NvDsBatchMeta) -> None:
        self._batch, self._known, self._moved = ref(batch), dict[int, Bound](), dict[int, Bound]()
        self.address = native.create_batch(max(1, int(batch.max_frames_in_batch)))
        c = structure("NvDsBatchMeta").from_address(self.address)
        lists = {name: batch.__dict__.pop(name, None) for name in _OF[NvDsBatchMeta]}
        self._ref = ref(self)
        c.misc_batch_info[:] = [v if isinstance(v, int) else 0 for v in batch.misc_batch_info]
        batch.__dict__["_owner"] = _Owner(self)
        for name, values in lists.items():
            own = batch.__dict__[name] = CList(self._ref, c, name)
            for value in values or ():
                own.append(value)

    @property
    def batch(self) -> NvDsBatchMeta | None:
        """The batch; None once it is gone."""
        return self._batch()

    def view(self, kind: type[Struct], address: int) -> Value:
        """Return the structure of Python's at an address, made if C code added it."""
        known = self._known.get(address)
        if known is None:
            c = structure(kind.__name__).from_address(address)
            known = self._known[address] = new_view(kind, c, self._ref)
            for name in _OF.get(kind, ()):
                known.__dict__[name] = CList(self._ref, c, name)
        return known

    def bound(self, struct: Bound) -> int:
        """Return the address of a structure in this tree; it is written there if need be."""
        if is_view(struct):
            address = ctypes.addressof(struct._c)
            if self._known.get(address) is struct:
                return address
            if (other := struct._tree()) is not None:
                other.read_back(struct, moved=True)
        kind = type(struct)
        name = f"nvds_acquire_{_POOLS[kind]}_meta_from_pool"
        address = int(native.call(name, c_void_p, result=c_void_p)(self.address))
        c = structure(kind.__name__).from_address(address)
        self._known[address] = struct
        old_lists = struct.__dict__
        if kind is NvDsUserMeta:
            self._bind_user(struct, c)
            return address
        lists = {n: old_lists.pop(n) for n in _OF.get(kind, ()) if n in old_lists}
        bind(struct, c, self._ref)
        for name in _OF.get(kind, ()):
            own = struct.__dict__[name] = CList(self._ref, c, name)
            if name == "obj_meta_list":
                self._add_objects(own, address, lists.get(name, ()))
            else:
                for value in lists.get(name, ()):
                    own.append(value)
        return address

    def _add_objects(self, own: CList, frame: int, objects: Iterable[Bound]) -> None:
        """Add the objects of a frame: runs of plain ones at once."""
        packed: list[tuple[Bound, bytes]] = []
        for obj in objects:
            record = None
            if type(obj) is NvDsObjectMeta and obj.__dict__.get("parent") is None:
                record = _RECORD.pack(obj)
            if record is not None:
                packed.append((obj, record))
                continue
            self._add_packed(frame, packed)
            packed = []
            own.append(obj)
        self._add_packed(frame, packed)

    def _add_packed(self, frame: int, packed: list[tuple[Bound, bytes]]) -> None:
        """Let the library make objects of records, and make the objects of Python views on them."""
        if not packed:
            return
        addresses = (c_void_p * len(packed))()
        _add_records()(frame, len(packed), b"".join(record for _, record in packed), addresses)
        view = view_class(NvDsObjectMeta)
        names, lists, tree = view._fields.keys(), _OF[NvDsObjectMeta], self._ref
        for (obj, _), address in zip(packed, addresses, strict=True):
            c, old = _Object.from_address(address), obj.__dict__
            new = obj.__dict__ = {"_c": c, "_tree": tree}
            obj.__class__ = view
            self._known[address] = obj
            for name in lists:
                mine = new[name] = CList(tree, c, name)
                for value in old.pop(name, ()):
                    mine.append(value)
            for name in old.keys() - names:
                new[name] = old[name]

    def _bind_user(self, user: Bound, c: CStruct) -> None:
        """Write a user meta: its functions in C stand for those of Python's."""
        base = user.base_meta
        copy, release = base.copy_func, base.release_func
        value, meta_type = user.user_meta_data, int(base.meta_type)
        base.__dict__.pop("copy_func", None)
        base.__dict__.pop("release_func", None)
        user.__dict__.pop("user_meta_data", None)
        bind(user, c, self._ref)
        c.base_meta.meta_type = meta_type
        c.user_meta_data = address = data.address_of(value)
        if isinstance(copy, data.CFunction) or isinstance(release, data.CFunction):
            c.base_meta.copy_func = getattr(copy, "address", 0)
            c.base_meta.release_func = getattr(release, "address", 0)
        elif address:
            data.set_functions(address, copy, release)
            c.base_meta.copy_func, c.base_meta.release_func = data.COPY, data.RELEASE

    def read_back(self, struct: Bound, moved: bool = False) -> None:
        """Read a structure that leaves the tree into memory of Python's.

        Args:
            struct: a view of this tree.
            moved: whether it goes to another tree; its memory stays what others' parent is here.
        """
        address = ctypes.addressof(struct._c)
        self._known.pop(address, None)
        if moved:
            self._moved[address] = struct
        detach(struct)

    def kept_user(self, user: Bound) -> tuple[Value, Value, Value]:
        """Return the data of a user meta that leaves, with the functions that copy and release it.

        Data of C goes with its meta: what stays is a copy, or nothing where C has no function.
        """
        base, value = user._c.base_meta, user.user_meta_data
        functions = data.functions_of(user._c.user_meta_data or 0)
        if functions is not None:
            return value, *functions
        if not base.copy_func:
            return None, None, None
        copy = data.CFunction(base.copy_func, True)
        release = data.CFunction(base.release_func, False) if base.release_func else None
        return copy(user), copy, release

    def address_of(self, view: Bound, name: str, value: Value) -> int:
        """Return the address of a value that a field shall point to."""
        if value is None or isinstance(value, int):
            return value or 0
        if name == "parent":
            return self.bound(value)
        if isinstance(value, data.CFunction):
            return value.address
        return data.address_of(value) if name == "user_meta_data" else 0

    def value_at(self, view: Bound, name: str, address: int) -> Value:
        """Return the value that a field points to."""
        if name == "parent":
            return self._moved.get(address) or self.view(NvDsObjectMeta, address)
        if name == "user_meta_data":
            return data.value_at(address, view._c.base_meta.meta_type)
        if name in ("copy_func", "release_func"):
            own = address in (data.COPY, data.RELEASE)
            return None if own else data.CFunction(address, name == "copy_func")
        return address

    def close(self) -> None:
        """Free the structures; those that an application holds are read back."""
        known = list(self._known.values())
        for index in range(len(known)):
            struct = known[index]
            if sys.getrefcount(struct) > _HELD + 1:  # and the registry
                detach(struct)
        self._known.clear()
        self._moved.clear()
        native.destroy_batch(self.address)


class _Owner:
    """Closes a tree with the last batch that has it."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def __del__(self) -> None:
        self.tree.close()


_lock = RLock()


def tree_of(batch: Bound) -> int:
    """Return the address of a batch's structures; they are built on the first call."""
    root = batch
    while root.owner is not None:
        root = root.owner
    with _lock:
        owner = root.__dict__.get("_owner")
        tree = Tree(root) if owner is None else owner.tree
        if batch is not root:
            for name in ("_owner", *_OF[NvDsBatchMeta]):
                batch.__dict__[name] = root.__dict__[name]
    address: int = tree.address
    return address


@cache
def serve() -> Value:
    """Let C code ask for batches, from now on.

    Returns:
        The callback, which the cache keeps.
    """
    get = bridge().get

    def answer(buffer: int) -> int:
        try:
            batch = get(buffer)
            return 0 if batch is None else tree_of(batch)
        except Exception:  # C cannot take it
            traceback.print_exc()
            return 0

    callback = native.Ask(answer)
    native.serve_batches(callback, bridge().api)
    return callback
