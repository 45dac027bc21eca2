"""The user's own library of message payloads: `msg2p-lib`, the functions nvds_msg2p_*.

Start at `library.py`.
"""
