"""Sources: where frames come from."""
