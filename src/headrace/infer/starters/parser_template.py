"""Parsers to begin with, for outputs that no built-in one reads: Python or C++, and a test."""

from __future__ import annotations

import re
from dataclasses import dataclass
from keyword import iskeyword
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.text import quoted
from headrace._core.types import Array, Arrays
from headrace.infer.recordings.writer import one_item
from headrace.meta import DetectionParams, Layer, NetworkInfo

if TYPE_CHECKING:
    from headrace.infer.recognise.recognise import Recognition

RECORDED = "recorded.safetensors"
_USED = ("layers", "network", "params", "np", "corners", "scores", "class_ids")


@dataclass(frozen=True)
class Grid:
    """Two outputs that may be a grid: scores (C, H, W), and distances (4, H, W) to the edges.

    Attributes:
        scores, distances: names of the outputs.
        classes: C.
        logits: scores go beyond 0..1.
        logarithms: distances go below 0.
    """

    scores: str
    distances: str
    classes: int
    logits: bool
    logarithms: bool


@dataclass(frozen=True)
class ParserFiles:
    """A parser of one model's outputs, to be made right.

    Attributes:
        stem: of the file's name.
        outputs: those of one run: name -> array without the batch axis.
        size: width and height of the network.
        channels: of its images.
        grid: set where the outputs look like one.
        cpp: C++ instead of Python.
        named: how many classes the metadata names; 0 if it names none.
    """

    stem: str
    outputs: Arrays
    size: tuple[int, int]
    channels: int
    grid: Grid | None
    cpp: bool
    named: int

    @classmethod
    def of(cls, recognition: Recognition, *, cpp: bool) -> ParserFiles:
        """The parser for a model; it is run once on noise."""
        outputs = recognition.run()
        stem = _word(recognition.evidence.path.stem) or "model"
        stem = f"m_{stem}" if stem[0].isdigit() else stem
        size = (recognition.images.width, recognition.images.height)
        return cls(
            stem,
            outputs,
            size,
            recognition.images.channels,
            _grid(outputs),
            cpp,
            len(recognition.names),
        )

    @property
    def function(self) -> str:
        """Name of the parser."""
        return f"parse_{self.stem}"

    @property
    def library(self) -> str:
        """File that the config names."""
        return f"lib{self.stem}_parser.so" if self.cpp else f"{self.stem}_parser.py"

    @property
    def classes(self) -> int:
        """How many there are."""
        return self.named or (self.grid.classes if self.grid is not None else 1)

    @property
    def why_classes(self) -> str:
        """The reason of that number."""
        if self.named:
            return "names in the metadata"
        return "maps of scores" if self.grid is not None else "not known: set it, and labels.txt"

    def files(self) -> dict[str, str | bytes]:
        """Name -> content."""
        if self.cpp:
            return {f"{self.stem}_parser.cpp": self._cpp(), "Makefile": self._makefile()}
        return {
            self.library: self._python(),
            f"test_{self.stem}_parser.py": self._test(),
            RECORDED: self._recorded(),
        }

    def _recorded(self) -> bytes:
        params = DetectionParams(self.classes, np.zeros(self.classes, np.float32))
        layers = {name: Layer(name, array) for name, array in self.outputs.items()}
        return one_item(self.stem, layers, NetworkInfo(*self.size, self.channels), params)

    def _layers_text(self, indent: str) -> str:
        return "\n".join(
            f"{indent}{_plain(name)}: {_shape(array)}, {_range(array)} on noise"
            for name, array in self.outputs.items()
        )

    def _python(self) -> str:
        head = _PYTHON_HEAD.format(layers=self._layers_text("    "), function=self.function)
        if self.grid is None:
            reads = "\n".join(
                f"    {_variable(name, i)} = layers[{name!r}].data  # {_shape(array)}"
                for i, (name, array) in enumerate(self.outputs.items())
            )
            used = ", ".join(_variable(name, i) for i, name in enumerate(self.outputs))
            return head + _PYTHON_EMPTY.format(reads=reads, used=used)
        grid = self.grid
        score = "1 / (1 + np.exp(-best_value))" if grid.logits else "best_value"
        reach = "np.exp(distances[:, y, x])" if grid.logarithms else "distances[:, y, x]"
        return head + _PYTHON_GRID.format(
            scores=grid.scores, distances=grid.distances, score=score, reach=reach,
            why_score="values beyond 0..1: logits" if grid.logits else "values within 0..1",
            why_reach="values below 0: logarithms" if grid.logarithms else "no value below 0",
        )  # fmt: skip

    def _test(self) -> str:
        return _TEST.format(
            module=f"{self.stem}_parser", function=self.function, recorded=RECORDED,
            shapes="{" + ", ".join(
                f"{name!r}: {tuple(array.shape)}" for name, array in self.outputs.items()
            ) + "}",
        )  # fmt: skip

    def _cpp(self) -> str:
        layers = "\n".join(f"//{line}" for line in self._layers_text("  ").splitlines())
        finds = "\n".join(
            f"    const NvDsInferLayerInfo *layer{i} =\n"
            f"        find(outputLayersInfo, {_cpp_text(name)}, {array.size});"
            for i, (name, array) in enumerate(self.outputs.items())
        )
        names = [f"layer{i}" for i in range(len(self.outputs))]
        missing = " || ".join(f"!{name}" for name in names)
        body = _CPP_EMPTY.format(used="\n".join(f"    (void){name};" for name in names))
        if self.grid is not None:
            at = list(self.outputs)
            grid = self.grid
            scores, distances = (names[at.index(n)] for n in (grid.scores, grid.distances))
            rows, columns = self.outputs[grid.scores].shape[-2:]
            score = "1 / (1 + std::exp(-best))" if grid.logits else "best"
            reach = "std::exp(value)" if grid.logarithms else "value"
            body = _CPP_GRID.format(scores=scores, distances=distances, rows=rows,
                                    columns=columns, score=score, reach=reach)  # fmt: skip
        return _CPP.format(
            layers=layers, function=self.function, finds=finds, missing=missing, body=body
        )

    def _makefile(self) -> str:
        return _MAKEFILE.format(library=self.library, source=f"{self.stem}_parser.cpp")


def _plain(name: str) -> str:
    """A name for a comment, which it cannot end."""
    return quoted(re.sub(r"[\"\\\\]", "'", name))


def _word(name: str) -> str:
    """A name as letters, digits and _ alone."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _variable(name: str, number: int) -> str:
    """A variable for an output; none that the template, or the language, uses itself."""
    word = _word(name)
    usable = word.isidentifier() and not iskeyword(word) and word not in _USED
    return word if usable else f"output{number}"


def _cpp_text(name: str) -> str:
    """A string literal in octal: its bytes do not depend on the compiler's encoding."""
    return '"' + "".join(
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in name.encode()
    ) + '"'  # fmt: skip


def _shape(array: Array) -> str:
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def _range(array: Array) -> str:
    return f"{array.min():.4g} to {array.max():.4g}" if array.size else "empty"


def _grid(outputs: Arrays) -> Grid | None:
    arrays = outputs.values()
    if len(outputs) != 2 or any(a.ndim != 3 or a.dtype.kind != "f" or not a.size for a in arrays):
        return None
    (a, first), (b, second) = outputs.items()
    if first.shape[1:] != second.shape[1:] or 4 not in (first.shape[0], second.shape[0]):
        return None
    if second.shape[0] != 4 or (first.shape[0] == 4 and second.min() >= 0 and second.max() <= 1):
        a, first, b, second = b, second, a, first
    logits = bool(first.min() < 0 or first.max() > 1)
    return Grid(a, b, int(first.shape[0]), logits, bool(second.min() < 0))


_PYTHON_HEAD = '''"""Parser to be made right: no built-in one reads these outputs.

{layers}
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headrace import Detections
from headrace.meta import DetectionParams, Layer, NetworkInfo


def {function}(
    layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
) -> Detections:
    """Boxes in network pixels; the config's NMS follows.

    `layers` are outputs of one image, `network` the size of the input, `params` has the number
    of classes and their thresholds. docs/custom-libraries.md explains the rest.
    """
'''

_PYTHON_EMPTY = """{reads}
    # From these make corners (N, 4) left, top, right, bottom in pixels of the network input, scores
    # (N,) and class numbers (N,). Until then nothing is found.
    _ = ({used},)
    corners = np.empty((0, 4), np.float32)
    scores = np.empty(0, np.float32)
    class_ids = np.empty(0, np.int32)
    return Detections.from_xyxy(corners, scores, class_ids)
"""

_PYTHON_GRID = """\
    # Taken for a grid of cells: a score for each class, and the distances from the middle of the
    # cell to the left, top, right and bottom edge of the object, in cells. Nothing in the model's
    # file says so: check it, and how scores and reach are made.
    values = layers[{scores!r}].data
    distances = layers[{distances!r}].data
    best = values.argmax(axis=0)
    best_value = values.max(axis=0)
    scores = {score}  # {why_score}
    y, x = np.nonzero(scores >= params.per_class_threshold[best])
    reach = {reach}  # {why_reach}
    rows, columns = scores.shape
    cell = np.array([[network.width / columns], [network.height / rows]], np.float32)
    middle = (np.stack([x, y]) + np.float32(0.5)) * cell
    corners = np.concatenate([middle - reach[:2] * cell, middle + reach[2:] * cell])
    limits = np.array([network.width, network.height] * 2, np.float32)[:, None]
    corners = np.clip(corners, 0, limits).T
    return Detections.from_xyxy(corners, scores[y, x], best[y, x])
"""

_TEST = '''\
"""Replays recorded outputs, of one run on noise, into the parser. For pytest or headrace exec.

Record your own: headrace record config_infer.txt image.jpg -o {recorded}
"""

from pathlib import Path

import numpy as np

import headrace

FOLDER = Path(__file__).parent
SHAPES = {shapes}


def recorded():
    return headrace.load_recording(FOLDER / "{recorded}")


def parser():
    namespace = {{}}
    exec((FOLDER / "{module}.py").read_text(), namespace)
    return namespace["{function}"]


def test_the_recorded_outputs_are_those_of_the_model():
    for item in recorded():
        assert {{name: layer.shape for name, layer in item.layers.items()}} == SHAPES


def test_boxes_lie_in_the_network_and_have_classes():
    for item in recorded():
        found = parser()(item.layers, item.network, item.params)
        assert np.isfinite(found.boxes).all()
        if len(found):
            width, height = item.network.width, item.network.height
            assert found.boxes[:, :2].min() >= 0
            assert (found.boxes[:, 0] + found.boxes[:, 2]).max() <= width + 1e-3
            assert (found.boxes[:, 1] + found.boxes[:, 3]).max() <= height + 1e-3
            assert 0 <= found.class_ids.min() <= found.class_ids.max() < item.params.num_classes


if __name__ == "__main__":
    test_the_recorded_outputs_are_those_of_the_model()
    test_boxes_lie_in_the_network_and_have_classes()
    print("the parser takes the recorded outputs")
'''

_CPP = """// Parser to be made right: no built-in one reads these outputs.
{layers}
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <vector>

#include "nvdsinfer_custom_impl.h"

static const NvDsInferLayerInfo *find(const std::vector<NvDsInferLayerInfo> &layers,
                                      const char *name, unsigned int elements) {{
    for (const NvDsInferLayerInfo &layer : layers)
        if (!std::strcmp(layer.layerName, name) && layer.dataType == FLOAT &&
            layer.inferDims.numElements == elements)
            return &layer;
    std::cerr << "no float output " << name << " of " << elements << " numbers" << std::endl;
    return nullptr;
}}

extern "C" bool {function}(const std::vector<NvDsInferLayerInfo> &outputLayersInfo,
    const NvDsInferNetworkInfo &networkInfo,
    const NvDsInferParseDetectionParams &detectionParams,
    std::vector<NvDsInferObjectDetectionInfo> &objectList);
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE({function});

// Boxes in network pixels; the config's NMS follows.
extern "C" bool {function}(const std::vector<NvDsInferLayerInfo> &outputLayersInfo,
    const NvDsInferNetworkInfo &networkInfo,
    const NvDsInferParseDetectionParams &detectionParams,
    std::vector<NvDsInferObjectDetectionInfo> &objectList) {{
{finds}
    if ({missing}) return false;
{body}    return true;
}}
"""

_CPP_EMPTY = """\
    // From their `buffer`s make objects: classId, left, top, width, height, detectionConfidence.
    // Until then nothing is found.
{used}
    (void)networkInfo;
    (void)detectionParams;
    (void)objectList;
"""

_CPP_GRID = """\
    // Taken for a grid of cells: a score for each class, and the distances from the middle of the
    // cell to the left, top, right and bottom edge, in cells. Nothing in the model's file tells it.
    const unsigned int rows = {rows}, columns = {columns}, cells = rows * columns;
    const unsigned int classes = {scores}->inferDims.numElements / cells;
    const float *values = static_cast<const float *>({scores}->buffer);
    const float *distances = static_cast<const float *>({distances}->buffer);
    const float cellWidth = float(networkInfo.width) / columns;
    const float cellHeight = float(networkInfo.height) / rows;
    const float right = networkInfo.width, bottom = networkInfo.height;
    for (unsigned int cell = 0; cell < cells; ++cell) {{
        unsigned int classId = 0;
        for (unsigned int c = 1; c < classes; ++c)
            if (values[c * cells + cell] > values[classId * cells + cell]) classId = c;
        if (classId >= detectionParams.perClassPreclusterThreshold.size()) continue;
        const float best = values[classId * cells + cell];
        const float score = {score};
        if (score < detectionParams.perClassPreclusterThreshold[classId]) continue;
        float reach[4];
        for (unsigned int edge = 0; edge < 4; ++edge) {{
            const float value = distances[edge * cells + cell];
            reach[edge] = {reach} * (edge % 2 ? cellHeight : cellWidth);
        }}
        const float x = (cell % columns + 0.5f) * cellWidth;
        const float y = (cell / columns + 0.5f) * cellHeight;
        const float x1 = std::max(0.f, x - reach[0]), y1 = std::max(0.f, y - reach[1]);
        const float x2 = std::min(right, x + reach[2]), y2 = std::min(bottom, y + reach[3]);
        NvDsInferObjectDetectionInfo object = {{}};
        object.classId = classId;
        object.left = x1;
        object.top = y1;
        object.width = x2 - x1;
        object.height = y2 - y1;
        object.detectionConfidence = score;
        objectList.push_back(object);
    }}
"""

_MAKEFILE = """# Needs g++ and headrace. Where DeepStream is installed:
#   make FLAGS=-I/opt/nvidia/deepstream/deepstream/sources/includes
FLAGS ?= $(shell headrace includes)

{library}: {source}
\tg++ -std=c++17 -O2 -Wall -shared -fPIC $(FLAGS) $< -o $@
"""
