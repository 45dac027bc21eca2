"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "b9a79ed3dd47"
