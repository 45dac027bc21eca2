"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "6f9dc66e3dbf"
