"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "0e7b2c976fed"
