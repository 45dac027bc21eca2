"""Compile users' libraries from their sources. Start at `build_library.py`."""
