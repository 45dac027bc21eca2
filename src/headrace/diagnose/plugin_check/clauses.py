"""The parts of the contract between TensorRT and a plugin, as `headrace check-plugin` names them.

Source: the comments of TensorRT's headers, in words of our own (tensorrt-plugins spec 1 to 9).
"""

from __future__ import annotations

CLAUSES: dict[str, tuple[str, str]] = {
    # creators
    "fields": ("getFieldNames", "a collection whose count is not negative, whose fields have names "
               "that differ, NUL-terminated and shorter than 1024 bytes"),
    "create": ("createPlugin", "makes a plugin of the fields; null says that it failed"),
    "create-defaults": ("createPlugin", "a field that the node has no attribute for is not in the "
                        "collection: the creator has a default for it"),
    "create-by-name": ("createPlugin", "a field is found by its name: the parser leaves out those "
                       "without an attribute, and the others move up"),
    "fields-lent": ("createPlugin", "names and data of the fields are the caller's, and valid "
                    "during the call only"),
    "names": ("getPluginType, getPluginName", "plugins have the name and version of their creator, "
              "by which an engine finds it again; strings are shorter than 1024 bytes"),
    "namespace": ("setPluginNamespace", "getPluginNamespace returns the namespace that was set"),
    # descriptions
    "outputs-count": ("getNbOutputs", "a constant, greater than 0"),
    "output-types": ("getOutputDataType", "the type of each output, the same for the same inputs"),
    "output-shapes": ("getOutputDimensions, getOutputShapes", "dimensions that are not negative, "
                      "made of the inputs' dimensions, the same for the same inputs"),
    "formats": ("supportsFormatCombination", "at least one combination of types and formats is "
                "accepted"),
    "formats-pure": ("supportsFormatCombination", "the answer depends on the entries up to pos "
                     "alone: those behind it are not set"),
    "formats-same": ("supportsFormatCombination", "the same question has the same answer, also "
                     "from a clone"),
    "format-limit": ("getFormatCombinationLimit", "a number that is not negative"),
    "capabilities": ("getCapabilityInterface", "CORE, BUILD and RUNTIME are there, each the same "
                     "object as often as it is asked for"),
    # building
    "configure": ("configurePlugin", "returns 0 for forms that supportsFormatCombination accepted, "
                  "in every profile"),
    "workspace": ("getWorkspaceSize", "a number of bytes, the same for the same descriptors"),
    "initialize": ("initialize", "returns 0, and may be called again after terminate"),
    "tactics": ("getValidTactics, setTactic", "tactics are unique and positive, setTactic accepts "
                "each, and each computes the same"),
    # copies
    "clone": ("clone", "a new object of the same class"),
    "clone-same": ("clone", "the copy has the parameters and the state of the original, and "
                   "computes the same"),
    "clone-namespace": ("clone", "the copy has the namespace of the original"),
    "attach": ("attachToContext", "a version-3 plugin returns a new object, initialised as a clone "
               "is"),
    # engines
    "serialize-size": ("getSerializationSize, serialize", "serialize writes as many bytes as "
                       "getSerializationSize returned, neither more nor fewer"),
    "serialize-same": ("serialize", "two calls on one object write the same bytes: what is not a "
                       "parameter (addresses, memory that was not set) means nothing elsewhere"),
    "serialize-fields": ("getFieldsToSerialize", "a collection that is not null; each field has a "
                         "name, data, and the number of its elements"),
    "deserialize": ("deserializePlugin, createPlugin(kRUNTIME)", "makes the plugin from what was "
                    "saved; null ends the load"),
    "deserialize-same": ("deserializePlugin, createPlugin(kRUNTIME)", "a plugin that was loaded "
                         "computes what the saved one did"),
    "deserialize-lent": ("deserializePlugin", "reads no more bytes than there are, and keeps no "
                         "pointer to them: they are the caller's"),
    # running
    "shape-change": ("onShapeChange, configurePlugin", "called again when shapes change: results "
                     "depend on the present shapes, not on earlier ones"),
    "enqueue": ("enqueue", "returns 0 if all was queued; neither ends the process nor throws"),
    "outputs-written": ("enqueue", "every element of every output is written"),
    "outputs-bounds": ("enqueue", "nothing is written outside of the outputs"),
    "inputs-read-only": ("enqueue", "inputs are not written to: other layers read them"),
    "inputs-bounds": ("enqueue", "nothing is read outside of the inputs"),
    "workspace-bounds": ("enqueue, getWorkspaceSize", "of the workspace no more bytes are used "
                         "than getWorkspaceSize returned"),
    "workspace-content": ("enqueue", "the workspace holds nothing of use at the start of a call, "
                          "and is another layer's after it"),
    "addresses-kept": ("enqueue", "addresses are those of this call: the next one has others"),
    "deterministic": ("enqueue", "the same inputs give the same outputs: results depend on nothing "
                      "that a call left behind, nor on memory that was never set"),
    "contexts": ("enqueue", "execution contexts run at the same time, each with a clone of its "
                 "own: they share no state that a run changes"),
    # ends
    "destroy": ("destroy, terminate, detachFromContext", "objects end in any order, each once; a "
                "clone does not need its original"),
    "leaks": ("destroy, terminate, the destructor", "what an object took is given back with it"),
    "exceptions": ("every method", "methods are noexcept: no exception leaves them"),
    "returns": ("every method", "calls return"),
    "gpu": ("enqueue", "computes on a GPU: nothing of it can be computed without one"),
}  # fmt: skip
"""Name of a clause -> the methods that it is about, and what they promise."""

OF_METHODS: dict[str, str] = {
    "create_plugin": "create", "field_names": "fields", "num_outputs": "outputs-count",
    "plugin_type": "names", "plugin_name": "names", "plugin_version": "names",
    "plugin_namespace": "namespace", "get_output_shape": "output-shapes",
    "get_output_dimensions": "output-shapes", "get_output_shapes": "output-shapes",
    "get_output_datatype": "output-types", "get_output_data_type": "output-types",
    "get_output_data_types": "output-types", "supports_format": "formats",
    "supports_format_combination": "formats", "format_combination_limit": "format-limit",
    "get_capability_interface": "capabilities", "configure_plugin": "configure",
    "configure_with_format": "configure", "get_workspace_size": "workspace",
    "initialize": "initialize", "terminate": "destroy", "get_valid_tactics": "tactics",
    "set_tactic": "tactics", "clone": "clone", "attach_to_context": "attach",
    "detach_from_context": "destroy", "get_serialization_size": "serialize-size",
    "serialization_size": "serialize-size", "serialize": "serialize-size",
    "get_fields_to_serialize": "serialize-fields", "deserialize_plugin": "deserialize",
    "on_shape_change": "shape-change", "enqueue": "enqueue", "execute_async": "enqueue",
    "destroy": "destroy", "timing_cache_id": "tactics", "get_aliased_input": "output-shapes",
}  # fmt: skip
"""Method or attribute of the Python classes -> the clause that a failure of it breaks."""
