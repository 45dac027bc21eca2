"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "a2dc8c0b4c9b"
