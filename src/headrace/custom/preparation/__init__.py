"""The user's own library of `nvdspreprocess`: `custom-lib-path`, a C++ function that makes tensors.

Start at `library.py`.
"""
