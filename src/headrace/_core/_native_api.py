"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "ce2b1551f314"
