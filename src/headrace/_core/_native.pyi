"""
Native kernels of headrace. Python checks arguments; this module assumes valid input.
"""

from collections.abc import Callable, Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


def native_api() -> str:
    """
    Digest of the functions here when this was compiled, see headrace._core._native_api.
    """

def preprocess(planes: Sequence[Annotated[NDArray[numpy.uint8], dict(device='cpu', writable=False)]], layout: int, frame_size: Sequence[int], src: Annotated[NDArray[numpy.int32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], dst: Annotated[NDArray[numpy.int32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], matrix: Sequence[float], out: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu')], net_size: Sequence[int], color: int, nhwc: bool, scale: float, fill: float, filled: bool, mean: Sequence[float], mean_image: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)] | None, filter: int, threads: int, generic: bool) -> None:
    """
    Crop, scale, convert and normalise pieces of one frame, (N, 4) src and dst, into N items of `out`; zeros where src has no width. `filled`: the bars are there. Releases the GIL.
    """

def fit_crops(rects: Annotated[NDArray[numpy.float64], dict(shape=(None, 4), order='C', device='cpu', writable=False)], frame_size: Sequence[int], net_size: Sequence[int], keep_aspect: bool, symmetric: bool, modern: bool, valid: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu')], src: Annotated[NDArray[numpy.int32], dict(shape=(None, 4), order='C', device='cpu')], dst: Annotated[NDArray[numpy.int32], dict(shape=(None, 4), order='C', device='cpu')], ratio: Annotated[NDArray[numpy.float64], dict(shape=(None, 2), order='C', device='cpu')]) -> None:
    """
    headrace.infer.geometry.fit for many rectangles of one frame; fills the last four, each with N rows.
    """

def preprocess_has_simd() -> bool:
    """Whether this machine runs the vector kernels of preprocess."""

def sampling_tables(src: Annotated[NDArray[numpy.int32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], dst: Annotated[NDArray[numpy.int32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], frame_size: Sequence[int], filter: int, chroma: bool, places: Annotated[NDArray[numpy.int32], dict(shape=(None, 2, 2, 2), order='C', device='cpu')]) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
    """
    The tables of N crops of frames of one size, for the GPU's kernel: (words,) int32. Fills `places`, (N, 2, 2, 2): planes, axes, place and stride. Releases the GIL.
    """

def remap(plane: Annotated[NDArray[numpy.uint8], dict(device='cpu', writable=False)], places: Annotated[NDArray[numpy.float32], dict(shape=(None, None, 2), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')], black: int, bordered: bool) -> None:
    """
    Fill (height, width[, channels]) with a plane's values at (x, y) of `places`, bilinearly; NaN gives `black`, as does what is beyond the plane if `bordered`, else the plane's edge. Releases the GIL.
    """

class Attached:
    """The objects of items in their frames, and the other rows."""

    @property
    def rects(self) -> NDArray[numpy.float32]: ...

    @property
    def scores(self) -> NDArray[numpy.float32]: ...

    @property
    def class_ids(self) -> NDArray[numpy.int32]: ...

    @property
    def starts(self) -> NDArray[numpy.int32]: ...

    @property
    def kept(self) -> NDArray[numpy.int32]: ...

    @property
    def dropped(self) -> NDArray[numpy.int32]: ...

    @property
    def reasons(self) -> NDArray[numpy.uint8]: ...

    @property
    def shifted(self) -> int: ...

def attach(boxes: Annotated[NDArray[numpy.float32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], class_ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], filters: Annotated[NDArray[numpy.float32], dict(shape=(None, 6), order='C', device='cpu', writable=False)], roi_bottom: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], places: Sequence[Sequence[float]], tally: Annotated[NDArray[numpy.int64], dict(shape=(None, 11), order='C', device='cpu')] | None, *, clip: bool, crop: bool, old: bool, modern: bool) -> Attached:
    """
    Map and filter the boxes of items, which begin at starts. filters is (C, 6): min w, min h, max w, max h, top offset, filtered out; class ids are below C. A place is offset x, y, ratio x, y, origin x, y, region l, t, w, h, parent left, top, frame width, height. tally is (C + 1, 11) or None: how many boxes of each class were dropped by what is added to it. Releases the GIL.
    """

def rotated_iou(a: Annotated[NDArray[numpy.float32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], angles_a: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], angles_b: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Fill out (N, M) with the IoU of rectangles (N, 4) and (M, 4) of left, top, width, height that are turned about their middles by angles in radians, clockwise; NaN where a number is not finite. Releases the GIL.
    """

class Clustered:
    """The objects of items; reason, by and object: traced."""

    @property
    def boxes(self) -> NDArray[numpy.float32]: ...

    @property
    def scores(self) -> NDArray[numpy.float32]: ...

    @property
    def class_ids(self) -> NDArray[numpy.int32]: ...

    @property
    def starts(self) -> NDArray[numpy.int32]: ...

    @property
    def rows(self) -> NDArray[numpy.int32]: ...

    @property
    def members(self) -> NDArray[numpy.int32]: ...

    @property
    def reason(self) -> NDArray[numpy.uint8]: ...

    @property
    def by(self) -> NDArray[numpy.int32]: ...

    @property
    def object(self) -> NDArray[numpy.int32]: ...

    @property
    def cut(self) -> NDArray[numpy.int32]: ...

    @property
    def stopped(self) -> bool: ...

class Stop:
    """A request that long work stops; any thread may make it."""

    def __init__(self) -> None: ...

    @property
    def asked(self) -> bool: ...

    @asked.setter
    def asked(self, arg: bool, /) -> None: ...

def cluster(boxes: Annotated[NDArray[numpy.float32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], class_ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], angles: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, starts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], thresholds: Annotated[NDArray[numpy.float32], dict(shape=(None, 5), order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int32], dict(shape=(None, 3), order='C', device='cpu', writable=False)], mode: int, trace: bool, tally: Annotated[NDArray[numpy.int64], dict(shape=(None, 13), order='C', device='cpu')] | None, max_candidates: int, stop: Stop | None) -> Clustered:
    """
    Cluster the boxes of items, which begin at starts. angles is (N,) or None: radians of rectangles that NMS compares turned. thresholds is (C, 5): pre, post, IoU, eps, min score; counts is (C, 3): topk, group threshold, min boxes; with trace, of a single item, reason, by and object have one entry per input row, else they are None; tally is (C + 1, 13) or None: how many boxes of each class had which reason is added to it. Of an item with more than max_candidates boxes above their thresholds, the best are clustered; cut is (N,), how many were left out of each item, None where none was. An item that takes longer than half a second when stop.asked is set has no objects, and stopped is True. Releases the GIL.
    """

def best_class(scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)], objectness: Annotated[NDArray[numpy.float32], dict(shape=(None,), device='cpu', writable=False)], thresholds: Annotated[NDArray[numpy.float32], dict(shape=(None,), device='cpu', writable=False)], index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], class_id: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], score: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], simd: bool = True) -> int:
    """
    Best class of each row of (candidates, classes) scores and the threshold of that class; fills the three arrays (room for every candidate), returns how many hits there are.
    """

def best_class_has_simd() -> bool:
    """Whether this machine runs the vector path of best_class."""

def half_to_float(half: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], single: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> bool:
    """
    IEEE halves (as uint16) to float32; False, and nothing written, where the machine has no instruction for it.
    """

def table_hits(tables: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), device='cpu', writable=False)], first: int, thresholds: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], planes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], class_id: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], score: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], starts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], threads: int = 1) -> int:
    """
    best_class of each item of (items, candidates, first + classes) tables, of any strides: the objectness is column 4 where first is 5. Fills columns 0 to 3 of the hits into planes, (4, room), the three columns, and the first hit of each item, with the end, into starts; returns how many hits there are. Releases the GIL.
    """

def ordered_hits(records: Annotated[NDArray[numpy.uint8], dict(shape=(None, 28), order='C', device='cpu', writable=False)], candidates: int, planes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], class_id: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], score: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], starts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Fills what table_hits fills, of hits found in any order: records of 28 bytes, the place among all candidates of all items, the class, the score, four numbers of a box.
    """

def boxes_of_centres(planes: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], class_id: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], score: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], cells: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: tuple[float, float], size: tuple[float, float], boxes: Annotated[NDArray[numpy.float32], dict(shape=(None, 4), order='C', device='cpu')], classes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], scores: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Boxes of the hits of table_hits, centre and size times scale, or on the grid of cells (3, candidates), inside the network's size; those below one pixel go. Fills the last three, and changes starts; returns how many there are. Releases the GIL.
    """

class CallLock:
    """
    Who may call a user's code now: a lock that its thread may enter again.
    """

    def __init__(self) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object | None, error: object | None, trace: object | None) -> None: ...

    @property
    def inside(self) -> bool:
        """The user's code is being called, by the thread that has the lock."""

    @inside.setter
    def inside(self, arg: bool, /) -> None: ...

class CustomCodeError(Exception):
    pass

class CustomResultError(Exception):
    pass

class SharedObject:
    """A shared object opened with RTLD_NOW | RTLD_LOCAL."""

    def __init__(self, path: str) -> None: ...

    @property
    def handle(self) -> int: ...

    def has(self, arg: str, /) -> bool: ...

class CustomFunction:
    """
    A function of a custom library. Calls are given tensors, and width, height and channels of the network; None: the function said false.
    """

    def __init__(self, library: SharedObject, name: str) -> None: ...

    def set_layers(self, names: Sequence[str], bindings: Sequence[int], inputs: bool = False) -> None: ...

    def set_params(self, num_classes: int, pre: Sequence[float], post: Sequence[float]) -> None: ...

    def call_detector(self, tensors: list, size: Sequence[int], words: int, with_angles: bool, most: int) -> object:
        """
        What decode_boxes gives, if the boxes are sound and no more than `most`; else (uint8 array of the boxes, capacity in bytes). `words`: 32-bit words of a box, 0 if they are not known.
        """

    def call_instances(self, tensors: list, size: Sequence[int], most_objects: int, most_pixels: int, most_pixels_together: int, most_values: int) -> object:
        """
        (what decode_boxes gives, list of masks, of values (n,) that are no mask by their number, or None, (masks not finite, masks of wrong size, pixels of the largest, of all)); a number of objects above the limit.
        """

    def call_classifier(self, tensors: list, size: Sequence[int], threshold: float, most: int) -> object:
        """
        ([(attribute, value, confidence, label or None)], text); a number of attributes above the limit.
        """

    def call_segmentation(self, tensors: list, size: Sequence[int], threshold: float, classes: int, map: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')]) -> object:
        """
        Fills map, which has the size of the network input. The address of the probabilities, 0 for none.
        """

    def call_initializer(self, tensors: list, size: Sequence[int], max_batch: int) -> bool:
        """
        What the function said. The tensors are the first entries of batches to fill.
        """

def decode_boxes(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,))], words: int, with_angles: bool) -> tuple:
    """
    ((N, 4) boxes, scores, class ids, angles or None, whether all is finite and in range).
    """

def demangle(name: str) -> str:
    """The C++ name behind a linker symbol."""

class MissingFunctionError(Exception):
    pass

def stand_in_target(function: str, library: str) -> int:
    """
    Address of what a stand-in's function jumps to; 0 where there are no stand-ins.
    """

def stand_in_calls() -> list[tuple[str, str]]:
    """
    (function, library) of calls that were answered with 0 since the last time.
    """

def class_type_info() -> int: ...

def draw_blend(plane: Annotated[NDArray[numpy.uint8], dict(device='cpu')], slots: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], xs: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], ys: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], keep: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], add: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
    """Blend the colour of each pixel's slot over a plane. Releases the GIL."""

def draw_blend_pixels(plane: Annotated[NDArray[numpy.uint8], dict(device='cpu')], slots: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], first_x: int, first_y: int, step: int, keep: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], add: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
    """
    As draw_blend, for slots that are pixels of the frame: sample (x, y) of the plane has the slot at (first_x + step * x, first_y + step * y), from 0 on.
    """

def mask_foreground(mask: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], xs: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], ys: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], limit: float, out: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Whether bilinear values at ys x xs, in 0..1 of the mask, are above the limit.
    """

def mask_contoured(pixels: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], line: int, out: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """0 for background, 1 inside, 2 within line steps of the edge."""

def mask_run_lengths(mask: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], left: int, top: int, width: int, height: int) -> str:
    """COCO's compressed run lengths of a mask at a place of an image."""

def measure_magnitudes(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple:
    """
    The largest finite absolute value, how many values are 0, and how many are infinite or not a number.
    """

def count_magnitudes(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: float, counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Add to `counts` the finite values that are not 0: each to the bin that its absolute value times `scale` begins with.
    """

def rounding_errors(rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], factors: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float, errors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Of each row, the sum of the squared errors that its values times a factor have as whole numbers of [low, high].
    """

def whole_boxes(rects: NDArray[numpy.float64], width: int, height: int, even: bool) -> list[tuple[int, int, int, int] | None]:
    """
    Left, top, right and bottom in whole pixels of rectangles; None where one is empty, not finite, or, as far as they are even, outside of the frame.
    """

class Inks:
    """Colours of the planes and opacities for each level of a text's cover."""

    def __init__(self, colors: Annotated[NDArray[numpy.float32], dict(shape=(256, 3), order='C', device='cpu', writable=False)], alphas: Annotated[NDArray[numpy.uint8], dict(shape=(256), order='C', device='cpu', writable=False)]) -> None: ...

class Sheet:
    """
    Planes to draw on: one of (H, W, 3), or Y, U, V with chroma of 2 x 2 pixels. Everything is clipped to them; opacities are 0..255.
    """

    def __init__(self, planes: Sequence[Annotated[NDArray[numpy.uint8], dict(order='C', device='cpu')]]) -> None: ...

    def fill(self, left: int, top: int, right: int, bottom: int, color: tuple, opacity: int) -> None: ...

    def outline(self, left: int, top: int, right: int, bottom: int, width: int, color: tuple, opacity: int) -> None:
        """
        A border of so many pixels inside a box; one too small for it is filled.
        """

    def paste(self, cover: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], left: int, top: int, inks: Inks) -> None:
        """Blend a text, its corner at an even place."""

class Glyphs:
    """Characters of one font at one size, drawn once each."""

    def __init__(self) -> None: ...

    def add(self, code: int, strip: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], margin: int, advance: int) -> None:
        """
        A character on a strip of the text's height; it begins margin columns in.
        """

    def cover(self, text: str, padding: int) -> NDArray[numpy.uint8] | None:
        """
        (h, w) cover 0..255 of a text of one line, w even; None if a character is lacking.
        """

class GuardChannel:
    """One side of the page that requests go through."""

    def __init__(self, page: int, link: int) -> None: ...

    def ask(self, arrays: list, to: Sequence[int], sizes: Sequence[int], timeout_s: float, worker: int, process: int, slots: GuardSlots | None = None) -> str:
        """
        Copy arrays of so many bytes to addresses, but those that are in slots, post a request and wait: 'answered', 'died', 'late', 'nonsense' or 'closed'.
        """

    @property
    def busy(self) -> bool:
        """A request is under way, or its answer is not read."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object | None, error: object | None, trace: object | None) -> None: ...

    @property
    def closed(self) -> bool:
        """The worker was ended: no answer is waited for."""

    @closed.setter
    def closed(self, arg: bool, /) -> None: ...

    def next(self) -> bool: ...

    def leave_if_forked(self) -> None:
        """
        End this process if it is a copy of the worker: what it shares is the worker's.
        """

    def answer(self) -> bool: ...

class GuardSlots:
    """Addresses that are parts of a file in shared memory."""

    def __init__(self) -> None: ...

    def add(self, start: int, bytes: int, offset: int, mapped: int) -> None: ...

GUARD_WORDS: dict = ...

GUARD_MAX_PLACES: int = 146

GUARD_PLACES_AT: int = 64

def guard_boxes(address: int, size: int, count: int, with_angles: bool) -> object:
    """
    Copies of a worker's boxes: (what decode_boxes gives, bytes that they take); None if there are not as many bytes.
    """

def guard_signal_main_thread(process: int, number: int) -> bool:
    """Send a signal to the first thread of another process."""

def guard_report_to(fd: int, hang_signal: int) -> None:
    """
    Report fatal signals, std::terminate and exit of this process to a file descriptor.
    """

def guard_report() -> tuple[int, int]:
    """(file of reports or -1, signal that asks for one)."""

def guard_end_as(code: int) -> None:
    """
    End this process as another one ended: exit status, or a signal's number, negative.
    """

def guard_set_function(name: str) -> None:
    """What is called from now on."""

def guard_give_up(function: str, why: str) -> None:
    """End this process, in which a function has left the GPU unusable."""

def guard_set_region(slot: int, start: int, end: int, name: str, file: int = -1, offset: int = 0) -> None:
    """
    Name memory that a protected page follows; memory of a file can only be read, and becomes a copy of its own when it is written to. `offset`: of the page that `start` is in.
    """

def guard_take_back() -> bool:
    """Share again what became a copy; whether anything had."""

class GuardWriter:
    """The right to write to a file."""

    def __init__(self, file: int, bytes: int) -> None: ...

class GuardMapping:
    """Whole pages of a file in shared memory."""

    def __init__(self, file: int, offset: int, bytes: int, writer: GuardWriter | None = None) -> None: ...

    @property
    def address(self) -> int: ...

GUARD_HUGE_PAGE: int = 2097152

GUARD_GAP: int = 1048576

def guard_protect(address: int, bytes: int, readable: bool, writable: bool) -> None:
    """Change the rights of whole pages."""

def guard_sandbox(memory_bytes: int, gpu: bool, reads: Sequence[str], narrow: bool, writes: Sequence[str], devices: Sequence[str], landlock: int = 1048576) -> list[tuple[str, str]]:
    """
    Give up what a library does not need, for good; what could not be done: (what, why). `gpu`: a driver of NVIDIA shall work in it; `reads`, `writes`, `devices`: paths that it reaches; `narrow`: `reads` are all that it may read, folders included; `landlock`: the newest version that is used.
    """

def guard_landlock_version() -> int:
    """Of this kernel; 0 without Landlock."""

def guard_print_lines() -> None:
    """Have C's standard output write whole lines at once, as to a terminal."""

def guard_adopt_orphans() -> bool:
    """Become the parent of what this process's children leave behind."""

def note_crashes(text: str, exit_status: int) -> None:
    """
    Have exit() and fatal signals that nothing handles say this before they end the process.
    """

def class_map(scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], limit: float, nhwc: bool, map: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], simd: bool = True) -> None:
    """
    Class of each pixel: scores is (C, pixels), or (pixels, C) when nhwc; map is (pixels,). The first of the largest values above limit wins, -1 for none. Releases the GIL.
    """

def match_boxes(tracks: Annotated[NDArray[numpy.float64], dict(shape=(None, 4), order='C', device='cpu', writable=False)], track_groups: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ranks: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], found: Annotated[NDArray[numpy.float64], dict(shape=(None, 4), order='C', device='cpu', writable=False)], found_groups: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], min_iou: float) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
    """
    The track that each found box continues, or -1: by rank of the track, then greatest overlap first. Boxes are left, top, right, bottom. Releases the GIL.
    """

def best_overlap(found: Annotated[NDArray[numpy.float64], dict(shape=(None, 4), order='C', device='cpu', writable=False)], found_groups: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], others: Annotated[NDArray[numpy.float64], dict(shape=(None, 4), order='C', device='cpu', writable=False)], other_groups: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    The greatest IoU of each found box with any other of its group. Releases the GIL.
    """

class IouTracks:
    """The tracks of one source, by constant velocity and overlap."""

    def __init__(self, *, min_iou: float, max_new_iou: float, velocity_gain: float, min_confidence: float, min_new_confidence: float, min_hits: int, max_age: int, max_probation_misses: int, max_tracks: int) -> None: ...

    def step(self, objects: TrackedObjects, elapsed: int) -> int:
        """
        Continue tracks with the objects of a frame; how many of the tracks need an id. Of many it releases the GIL.
        """

    def name(self, next: int, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        Give out ids from next on, fill in those of the objects of the last step (0 without), and forget old tracks.
        """

    def velocities(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, 4))]:
        """(N, 4) pixels per frame of the edges of the objects of the last step."""

    def pass_over(self, elapsed: int) -> None:
        """
        A frame in which nothing was looked for: lost tracks age, the others only move.
        """

    def __len__(self) -> int: ...

class TrackedObjects:
    """
    The objects of a frame that trackers look at, in an order of their values.
    """

    def __init__(self, rects: Annotated[NDArray[numpy.float32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], components: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], parents: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], confidences: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], component_ids: Sequence[int] | None, class_ids: Sequence[int] | None, match_classes: bool) -> None: ...

    @property
    def index(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """(N,) int64, where they are in the frame's objects."""

    @property
    def corners(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, 4), writable=False)]:
        """(N, 4) float64 left, top, right, bottom in frame pixels."""

    @property
    def scores(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), writable=False)]:
        """(N,) float32 confidences; below 0 where unknown."""

    @property
    def groups(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), writable=False)]:
        """(N,) int64; only objects of one group can be one track."""

    def write(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], object_ids: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu')], confidences: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        Write the track of each (0: none) into the columns of the frame, and 1 or 0 as confidence.
        """

    def __len__(self) -> int: ...

class Targets:
    """The targets of one source, by the original's rules."""

    def __init__(self, values: dict) -> None: ...

    def step(self, objects: TrackedObjects, elapsed: int, size: Sequence[int], pixels: tuple[Sequence[Annotated[NDArray[numpy.uint8], dict(device='cpu', writable=False)]], int, Sequence[int], Sequence[float]] | tuple[Callable, Sequence[int]] | None, looks: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None) -> None:
        """
        Continue, start and end targets with the objects of a frame. `pixels` are the planes, their layout, width and height, and the colour matrix; or of an image that is elsewhere a function of columns and rows (N, S) int32 that gives patches (N, 3, S, S) uint8, and width and height. Releases the GIL.
        """

    def pass_over(self, elapsed: int, size: Sequence[int], pixels: tuple[Sequence[Annotated[NDArray[numpy.uint8], dict(device='cpu', writable=False)]], int, Sequence[int], Sequence[float]] | tuple[Callable, Sequence[int]] | None) -> None:
        """
        A frame that no detector looked at: targets are followed by their look, or move on.
        """

    def change(self, values: dict) -> None:
        """
        Take other numbers from the next frame on; those of motion and features must be the same.
        """

    def fresh(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Keys of the targets that are reported and have no id."""

    def keys(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """The target of each object of the last step, 0 without."""

    def results(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], confidences: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], boxes: Annotated[NDArray[numpy.float64], dict(shape=(None, 4), order='C', device='cpu')]) -> None:
        """
        Fill in the id of each object of the last step (0: not reported), and where it has one, the tracker's confidence and box.
        """

    def states(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None, 4))], Annotated[NDArray[numpy.float32], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """
        Of all targets: keys, ids, states, ages, shadow ages, boxes, confidences, groups.
        """

    def ended(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Ids of the targets that ended in the last step."""

    def way(self, key: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, 5))]:
        """(T, 5) frame, left, top, right, bottom of a target's last frames."""

    def name(self, key: int, id: int) -> None:
        """Give a target its id; another one in the shadow that has it ends."""

    def __len__(self) -> int: ...

def project_boxes(boxes: Annotated[NDArray[numpy.float64], dict(shape=(None, 4), order='C', device='cpu', writable=False)], values: dict, frames: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None, 4))]:
    """
    (frames, 4) boxes to come, by an estimator that has seen (T, 4) of before.
    """

def estimate_boxes(boxes: Annotated[NDArray[numpy.float64], dict(shape=(None, 4), order='C', device='cpu', writable=False)], values: dict) -> tuple[list[list[float]], list[float]]:
    """
    The estimator's boxes after each of (T, 4), and the squared Mahalanobis distance of each from the one predicted.
    """

def count_pairs(first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> list:
    """(first, second, how many) of each pair of values, in their order."""

def gather(part: tuple, old: dict, values: list, texts: list, held: type, address: Callable, letters: Callable) -> bool:
    """
    Append the values of a structure's fields, and its texts of the type `held`; False for a structure that no record holds.
    """

def json_objects(heads: object, components: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order='C', device='cpu', writable=False)], none: int, track: bytes, numbers: tuple, of_track: tuple, arrays: tuple, tails: list) -> tuple:
    """
    JSON of N objects, with commas between, and how many are left out for numbers that are not finite. Of each: its head, bytes of heads by (component, class); the fields of numbers; the key track and the id, unless that is none, and behind it the fields of_track that are finite; its tail, if there are tails, one for each object that is written; the closing brace. A field is (keys, digits): keys with comma and colon, 3 or 6 decimals; arrays has (N,) or (N, keys) float32 of each, or None.
    """

class LentMemory:
    """
    Lets `lent_view` check against `blocks` in this thread while a `with` runs. A block has its first address, the first one behind it, whether a plugin may write there, and a name. A handler of fatal signals prints `call` and `library`, if the plugin is named.
    """

    def __init__(self, blocks: Sequence[tuple[int, int, bool, str]], call: str = '', library: str = '') -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, trace: object) -> None: ...

def lend(memory: LentMemory) -> None:
    """Does what entering it does; `give_back` leaves: faster."""

def give_back() -> None:
    """Leaves what was lent last."""

def lent_view(address: int, size: int, writable: bool) -> memoryview | None:
    """
    As `memory_view`; None if it reached beyond the lent block that begins or holds the address, or would write where it must not.
    """

def lent_blocks() -> list[tuple[int, int, bool, str]]:
    """All blocks that are lent in this thread, the innermost first."""

def efficient_nms(boxes: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, 4), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], anchors: Annotated[NDArray[numpy.float32], dict(shape=(None, None, 4), order='C', device='cpu', writable=False)] | None, score_threshold: float, iou_threshold: float, per_class: int, background: int, sigmoid: bool, centres: bool, agnostic: bool, clip: bool, count: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], out_boxes: Annotated[NDArray[numpy.float32], dict(shape=(None, None, 4), order='C', device='cpu')], out_scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], out_classes: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], out_rows: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    EfficientNMS of each image: (B, N, 1 or C, 4) boxes, (B, N, C) scores, (1 or B, N, 4) anchors; fills the first count rows of the (B, K) outputs. Releases the GIL.
    """

def batched_nms(boxes: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, 4), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], score_threshold: float, iou_threshold: float, background: int, top: int, plus_one: int, clip: bool, count: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], out_boxes: Annotated[NDArray[numpy.float32], dict(shape=(None, None, 4), order='C', device='cpu')], out_scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], out_classes: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], out_rows: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    BatchedNMS of each image, same shapes; plus_one: 0 no, 1 areas, 2 areas and overlap. Releases the GIL.
    """

def greedy_nms(boxes: Annotated[NDArray[numpy.float32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], class_ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, threshold: float, inclusive: bool, plus_one: int, rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Suppression of (N, 4) corner boxes, best first; fills `rows` until it is full, returns how many. Releases the GIL.
    """

def pack_channels(rows: int, blocks: int, images: int, channels: int, positions: int, width: int, item: int, threads: int, vectors: int = 64) -> None:
    """
    Pack a row-major tensor (images, channels, positions) at the address `rows` into blocks of `width` channels at `blocks`; `item`: bytes of an element; `vectors`: bytes of the widest ones to use, 64, 32 or 0. Padding becomes zero.
    """

def unpack_channels(blocks: int, rows: int, images: int, channels: int, positions: int, width: int, item: int, threads: int, vectors: int = 64) -> None:
    """The way back of `pack_channels`; padding is not read."""

class ForeignCreator:
    """A plugin creator of a C++ library."""

    @property
    def address(self) -> int: ...

    @property
    def library(self) -> str: ...

    @property
    def image(self) -> int: ...

    @property
    def third(self) -> bool: ...

    def is_of(self, arg: int, /) -> bool: ...

    def copy(self, keep: bool) -> ForeignCreator:
        """The same, keeping its library loaded or not."""

    def class_name(self) -> str: ...

    def name(self) -> object: ...

    def version(self) -> object: ...

    def get_namespace(self) -> object: ...

    def set_namespace(self, arg: str, /) -> None: ...

    def field_names(self) -> list: ...

    def field_count(self) -> object: ...

    def create(self, name: str, fields: object, phase: int) -> object: ...

    def deserialize(self, name: str, data: bytes) -> object: ...

def host_lend_pages(on: bool) -> None:
    """
    Lend the data of createPlugin and deserializePlugin in pages of their own, which cannot be accessed after the call. For a process that checks plugins.
    """

def exported_creators(library: SharedObject) -> list:
    """
    The creators that getCreators or getPluginCreators of a library gives; setLoggerFinder is called first.
    """

class ForeignLogger:
    """A logger of a C++ library."""

    def log(self, arg0: int, arg1: str, /) -> None: ...

class ForeignCallback:
    """An error recorder, a monitor, a listener … of a C++ library."""

    @property
    def kind(self) -> str: ...

    def call(self, method: str, *arguments: object) -> object:
        """Call a method by its name, with what follows as its arguments."""

class ForeignCalibrator:
    """An INT8 calibrator of a C++ library."""

    @property
    def algorithm(self) -> int: ...

    def batch_size(self) -> int: ...

    def get_batch(self, names: Sequence[str]) -> object: ...

    def read_cache(self) -> object: ...

    def write_cache(self, arg: bytes, /) -> None: ...

class ForeignFactory:
    """A factory of layers of a C++ library."""

    def is_plugin(self, arg: str, /) -> bool: ...

    def create(self, layer: str, weights: list, fields: object, namespace: str) -> object: ...

    def deserialize(self, layer: str, data: bytes) -> object: ...

class ForeignPluginV2:
    """A plugin of the V2 line of a C++ library."""

    @property
    def generation(self) -> int: ...

    @property
    def library(self) -> str: ...

    @property
    def image(self) -> int: ...

    @property
    def address(self) -> int: ...

    def is_of(self, arg: int, /) -> bool: ...

    def class_name(self) -> str: ...

    def destroy(self) -> None: ...

    def clone(self) -> object: ...

    def supports_combination(self, arg0: int, arg1: object, arg2: int, /) -> bool: ...

    def version(self) -> object: ...

    def get_namespace(self) -> object: ...

    def output_count(self) -> int: ...

    def configure(self, arg0: object, arg1: object, /) -> None: ...

    def type(self) -> object: ...

    def initialize(self) -> int: ...

    def terminate(self) -> None: ...

    def serialization_size(self) -> int: ...

    def workspace(self, arg: int, /) -> int: ...

    def detach(self) -> None: ...

    def dynamic_workspace(self, arg0: object, arg1: object, /) -> int: ...

    def dynamic_enqueue(self, arg0: object, arg1: object, arg2: object, arg3: object, arg4: int, arg5: int, /) -> int: ...

    def set_namespace(self, arg: str, /) -> None: ...

    def serialize(self, fill: int = 0) -> bytes: ...

    def output_dims(self, arg0: int, arg1: object, /) -> tuple: ...

    def supports_format(self, arg0: int, arg1: int, /) -> bool: ...

    def configure_with_format(self, arg0: object, arg1: object, arg2: int, arg3: int, arg4: int, /) -> None: ...

    def enqueue(self, arg0: int, arg1: object, arg2: object, arg3: int, arg4: int, /) -> int: ...

    def output_type(self, arg0: int, arg1: object, /) -> int: ...

    def output_broadcast(self, arg0: int, arg1: object, /) -> bool: ...

    def input_broadcast(self, arg: int, /) -> bool: ...

    def configure_ext(self, arg0: object, arg1: object, arg2: object, arg3: object, arg4: int, arg5: int, /) -> None: ...

    def attach(self) -> None: ...

    def output_exprs(self, arg0: int, arg1: object, arg2: object, /) -> list: ...

class ForeignPluginV3:
    """A plugin of the third generation of a C++ library."""

    @property
    def generation(self) -> int: ...

    @property
    def library(self) -> str: ...

    @property
    def image(self) -> int: ...

    @property
    def address(self) -> int: ...

    def is_of(self, arg: int, /) -> bool: ...

    def class_name(self) -> str: ...

    def destroy(self) -> None: ...

    def clone(self) -> object: ...

    def supports_combination(self, arg0: int, arg1: object, arg2: int, /) -> bool: ...

    def version(self) -> object: ...

    def get_namespace(self) -> object: ...

    def output_count(self) -> int: ...

    def configure(self, arg0: object, arg1: object, /) -> int: ...

    def name(self) -> object: ...

    def timing_cache_id(self) -> object: ...

    def format_limit(self) -> int: ...

    def metadata(self) -> object: ...

    def aliased_input(self, arg: int, /) -> int: ...

    def set_tactic(self, arg: int, /) -> int: ...

    def workspace(self, arg0: object, arg1: object, /) -> int: ...

    def on_shape_change(self, arg0: object, arg1: object, /) -> int: ...

    def enqueue(self, arg0: object, arg1: object, arg2: object, arg3: object, arg4: int, arg5: int, /) -> int: ...

    def has_build(self) -> bool: ...

    def has_runtime(self) -> bool: ...

    def attach(self, arg: object, /) -> object: ...

    def output_types(self, arg0: object, arg1: int, /) -> tuple: ...

    def output_exprs(self, arg0: object, arg1: object, arg2: object, arg3: int, /) -> tuple: ...

    def tactics(self) -> tuple: ...

    def fields_to_serialize(self) -> list: ...

class InitParams:
    """NvDsInferContextInitParams of an engine creator."""

    def __init__(self) -> None: ...

    def set_text(self, arg0: str, arg1: str, /) -> None: ...

    def set_number(self, arg0: str, arg1: float, /) -> None: ...

    def set_list(self, arg0: str, arg1: Sequence[str], /) -> None: ...

    def set_offsets(self, arg: Sequence[float], /) -> None: ...

    def set_infer_dims(self, arg0: int, arg1: int, arg2: int, /) -> None: ...

    def set_classes(self, arg: Sequence[Sequence[float]], /) -> None:
        """
        Rows of pre- and post-cluster threshold, eps, least boxes, group threshold, least score, IoU threshold, top-k.
        """

def host_set_world(world: object | None) -> None: ...

def host_count() -> int:
    """How many objects libraries were ever given."""

def host_forget(since: int) -> None:
    """
    Let go of the objects that libraries were given after `host_count` was that.
    """

def call_engine_creator(library: SharedObject, name: str, builder: object, config: object | None, params: InitParams, type: int, line: int = 0) -> tuple:
    """
    (what the function said, the engine or None). Without a config: the old signature. `line`: of a library of TensorRT's own headers, else 0.
    """

def library_number(library: SharedObject, name: str) -> int:
    """The number that a library exports, 0 if there is none."""

class ModelParser:
    """An IModelParser of a C++ library."""

    def has_full_dims(self) -> bool: ...

    def parse(self, network: object, line: int = 0) -> int: ...

    def name(self) -> str: ...

    def close(self) -> None: ...

def create_model_parser(library: SharedObject, params: InitParams) -> object:
    """What NvDsInferCreateModelParser made, or None."""

def get_plugin_factory(library: SharedObject, kind: str) -> tuple:
    """
    (what the function said, the type it named, the ForeignFactory or None). `kind`: Caffe, Uff or Runtime.
    """

def foreign_serve() -> None:
    """
    From now on, stand-ins of libnvinfer that are filled have the host's registry.
    """

def foreign_expect(line: int) -> None:
    """
    The line of the library that this thread loads next, 78 if it is 7 or 8; 0 afterwards.
    """

def foreign_register_exported(library: SharedObject, line: int) -> int:
    """
    Register the creators that getCreators or getPluginCreators of a library gives.
    """

def foreign_origin(address: int) -> tuple:
    """
    (line, release) of the library of TensorRT's own headers that an address is in; zeros for any other. A release is packed as getTensorRTVersion has it, 0 where it is not told.
    """

def foreign_release_text(line: int, release: int) -> str:
    """How a release is written: TensorRT 8.6.1 of 8601."""

def roi_sample(map: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], images: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], grids: Annotated[NDArray[numpy.float32], dict(shape=(None, 4), order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int32], dict(shape=(None, 2), order='C', device='cpu', writable=False)], offset: float, outside: int, largest: bool, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]) -> None:
    """
    Regions of (B, C, H, W): region i of image images[i] fills out[rows[i]]. grids is start y, step y, start x, step x; counts the samples of a bin. Releases the GIL.
    """

def roi_max_pool(map: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], images: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], regions: Annotated[NDArray[numpy.int64], dict(shape=(None, 4), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]) -> None:
    """
    Caffe's ROI pooling of (B, C, H, W); regions are y0, x0, y1, x1, the last counted in. Releases the GIL.
    """

def deformed_columns(map: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], image: int, numbers: Sequence[int], offset: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], mask: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    What each tap of a deformable convolution reads: (C * taps, out). Releases the GIL.
    """

def deformable_attention(value: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], shapes: Annotated[NDArray[numpy.int32], dict(shape=(None, 2), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], locations: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None, None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]) -> None:
    """Multi-scale deformable attention. Releases the GIL."""

def fill_elements(address: int, count: int, item: int, pattern: int) -> None:
    """
    Set `count` elements of `item` bytes at an address to a pattern of bits.
    """

def count_elements(address: int, count: int, item: int, pattern: int) -> int:
    """How many of the elements have that pattern of bits."""

def checksum(address: int, bytes: int) -> int:
    """
    A number that changes when memory does; of no use outside of this process.
    """

class OrtCall:
    """One computation of an operator; only valid while it lasts."""

    @property
    def run_id(self) -> int:
        """The operator's first input: the id of the run it belongs to."""

    def inputs(self) -> list[tuple[int, tuple[int, ...]]]:
        """Address and shape of each further input."""

    def output(self, index: int, shape: Sequence[int]) -> int:
        """Address of an output that gets this shape."""

class OrtOperators:
    """Operators of one session of ONNX Runtime that Python computes."""

    def __init__(self, compute: object, domain: str, operators: Sequence[tuple[str, Sequence[int], Sequence[int], bool]]) -> None:
        """
        compute(index, OrtCall) says whether it went well. An operator is (name, ONNX types of its inputs, of its outputs, whether its first input, an int32, is its first output too).
        """

    def register_with(self, ask: Callable) -> None:
        """
        Offer them while `ask` makes session options load this module as a library of operators.
        """

def loaded_library(prefix: str) -> int:
    """
    Handle of a library in this process whose file name begins so, which stays loaded; 0 if there is none.
    """

def address_of(array: object) -> int:
    """
    Where a dense, row-major array begins; 0 if it is empty. Anything else is a BufferError or ValueError.
    """

def memory_view(address: int, size: int, writable: bool) -> memoryview:
    """
    Bytes at an address, which must stay what they are as long as the view is used.
    """

def judge_connections(rule: object | None) -> bool:
    """
    Ask `rule(address, port, stream)` before FFmpeg connects or sends in this thread; None asks no more. Whether FFmpeg's calls could be directed here: without that, nothing is asked.
    """

def dlpack_capsule(address: int, shape: Sequence[int], strides: Sequence[int] | None, code: int, bits: int, owner: object, device: int, number: int) -> object:
    """
    A DLPack capsule over memory that `owner` keeps; strides count elements, None is row-major.
    """

class BorrowedTensor:
    """A tensor taken from a DLPack capsule, held with it."""

    def __init__(self, capsule: object) -> None: ...

    @property
    def address(self) -> int: ...

    @property
    def shape(self) -> list[int]: ...

    @property
    def strides(self) -> list[int]:
        """In elements."""

    @property
    def code(self) -> int: ...

    @property
    def bits(self) -> int: ...

    @property
    def lanes(self) -> int: ...
