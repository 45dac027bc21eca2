"""The host of C++ code: objects of noria's headers and Python objects of `trt` and `plugins`."""
