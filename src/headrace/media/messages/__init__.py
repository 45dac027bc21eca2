"""Messages: events of frames, their payloads, and how they reach a broker. Start at `sender.py`."""
