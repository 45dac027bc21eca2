"""Looking at models and pipelines from outside: how good they are, and why."""
