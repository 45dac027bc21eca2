"""What functions of the native core this Python code is written for: `make stubs`."""

__all__ = ["NATIVE_API"]

NATIVE_API = "68e5e6a8ff94"
