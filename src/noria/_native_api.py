"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "ac18c2ae9914"
