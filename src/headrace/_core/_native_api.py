"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "78e0a707fc35"
