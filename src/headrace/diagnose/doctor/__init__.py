"""`headrace doctor`: examine this machine by using its parts. Start at `examination.py`."""
