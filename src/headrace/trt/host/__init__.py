"""The host of C++ libraries compiled against Headrace's headers: networks, plugins, registry.

The headers' classes are inline code over one table of functions, `headrace_host_api_1`, which the
native module defines. This package answers them with the objects of `headrace.trt` and
`headrace.plugins`, and presents the library's own classes as Python classes.

Start at `world.py`.
"""
