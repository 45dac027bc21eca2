"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "6103977a3c94"
