"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "ba5507a7ef1b"
