"""BoxFilter_TRT: the best rows of (boxes, scores), and how many of them count.

Inputs: boxes (N, R, 4) and scores (N, R), float32. Outputs: the `keep` best boxes and scores of
each item, falling, and the number of scores over `threshold`, int32 (N, 1).
"""

import numpy as np

from headrace.plugins import (
    DataType,
    DimsExprs,
    IPluginCreatorV3One,
    IPluginV3,
    IPluginV3OneBuild,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
    array_at,
)

COUNT = 4  # position of the output `count` among all tensors


class BoxFilter(IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime):
    def __init__(self, keep=10, threshold=0.5):
        IPluginV3.__init__(self)
        self.plugin_name, self.plugin_version, self.plugin_namespace = "BoxFilter_TRT", "1", ""
        self.num_outputs = 3
        self.keep, self.threshold = keep, threshold

    def clone(self):
        return BoxFilter(self.keep, self.threshold)

    def get_output_data_types(self, input_types):
        return [DataType.FLOAT, DataType.FLOAT, DataType.INT32]

    def get_output_shapes(self, inputs, shape_inputs, make):
        batch, keep = inputs[0][0], make.constant(self.keep)
        return [
            DimsExprs([batch, keep, make.constant(4)]),
            DimsExprs([batch, keep]),
            DimsExprs([batch, make.constant(1)]),
        ]

    def supports_format_combination(self, pos, in_out, num_inputs):
        return in_out[pos].desc.type == (DataType.INT32 if pos == COUNT else DataType.FLOAT)

    def attach_to_context(self, context):
        return self.clone()

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        boxes, scores = (
            array_at(address, desc.dims, desc.type)
            for address, desc in zip(inputs, input_desc, strict=True)
        )
        best, top, count = (
            array_at(address, desc.dims, desc.type, writable=True)
            for address, desc in zip(outputs, output_desc, strict=True)
        )
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self.keep]
        top[...] = np.take_along_axis(scores, order, 1)
        best[...] = np.take_along_axis(boxes, order[..., None], 1)
        count[:, 0] = (scores > self.threshold).sum(1)

    def get_fields_to_serialize(self):
        return PluginFieldCollection(
            [
                PluginField("keep", np.array([self.keep], np.int32), PluginFieldType.INT32),
                PluginField(
                    "threshold", np.array([self.threshold], np.float32), PluginFieldType.FLOAT32
                ),
            ]
        )


class BoxFilterCreator(IPluginCreatorV3One):
    def __init__(self):
        IPluginCreatorV3One.__init__(self)
        self.name, self.plugin_version = "BoxFilter_TRT", "1"
        self.field_names = PluginFieldCollection(
            [
                PluginField("keep", None, PluginFieldType.INT32),
                PluginField("threshold", None, PluginFieldType.FLOAT32),
            ]
        )

    def create_plugin(self, name, fields, phase):
        given = {field.name: field.data[0].item() for field in fields}
        return BoxFilter(**given)
