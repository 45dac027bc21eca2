"""The host of C++ libraries compiled against Noria's headers: networks, plugins, registry.

The headers' classes are inline code over one table of functions, `noria_host_api_1`, which the
native module defines. This package answers them with the objects of `noria.trt` and
`noria.plugins`, and presents the library's own classes as Python classes.
"""
