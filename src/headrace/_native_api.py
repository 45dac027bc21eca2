"""Digest of the native functions that this Python code is written for: `make stubs`."""

NATIVE_API = "37143d2087fe"
