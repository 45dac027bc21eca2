"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "c88f5159e38d"
