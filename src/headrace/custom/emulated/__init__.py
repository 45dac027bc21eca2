"""Libraries for another processor: an emulator runs them, in a process of their own.

Start at `library.py`.
"""
