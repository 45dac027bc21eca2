"""A model parser for a format of its own: a text of blocks, and numbers in base64.

input image 3 96 160
conv 8 3 2 <numbers>
relu
mean
dense 4 <numbers>
softmax class
"""

import base64
from pathlib import Path

import numpy as np

import headrace.trt as trt
from headrace.custom import IModelParser


def numbers(text, *shape):
    array = np.frombuffer(base64.b64decode(text, validate=True), "<f4")
    return np.ascontiguousarray(array.reshape(shape))


class BlocksParser(IModelParser):
    def __init__(self, initParams):
        self.path = Path(initParams.modelFilePath)
        self.batch = initParams.maxBatchSize

    def hasFullDimsSupported(self):
        return True

    def getModelName(self):
        return self.path.stem

    def parseModel(self, network):
        tensor = None
        for line in self.path.read_text().splitlines():
            kind, *words = line.split()
            if kind == "input":
                shape = [int(word) for word in words[1:]]
                tensor = network.add_input(words[0], trt.float32, (-1, *shape))
            elif kind == "conv":
                maps, size, stride = map(int, words[:3])
                kernel = numbers(words[3], maps, tensor.shape[1], size, size)
                layer = network.add_convolution_nd(tensor, maps, (size, size), kernel)
                layer.stride_nd, layer.padding_nd = (stride, stride), (size // 2, size // 2)
                tensor = layer.get_output(0)
            elif kind == "relu":
                tensor = network.add_activation(tensor, trt.ActivationType.RELU).get_output(0)
            elif kind == "mean":
                tensor = network.add_reduce(tensor, trt.ReduceOperation.AVG, 0b1100, False)
                tensor = tensor.get_output(0)
            elif kind == "dense":
                count = int(words[0])
                matrix = numbers(words[1], count, tensor.shape[1])
                right = network.add_constant(matrix.shape, matrix).get_output(0)
                tensor = network.add_matrix_multiply(
                    tensor, trt.MatrixOperation.NONE, right, trt.MatrixOperation.TRANSPOSE
                ).get_output(0)
            elif kind == "softmax":
                layer = network.add_softmax(tensor)
                layer.axes = 0b10
                tensor = layer.get_output(0)
                tensor.name = words[0]
                network.mark_output(tensor)
            else:
                return 1  # no such block: the engine cannot be built
        return 0


def NvDsInferCreateModelParser(initParams):
    """The name that is looked for."""
    return BlocksParser(initParams)
