"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "b6459411ac56"
