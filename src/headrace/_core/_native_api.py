"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "4a67cc455029"
