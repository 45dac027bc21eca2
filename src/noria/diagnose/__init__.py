"""Looking at models and pipelines from outside: how good they are, what is wrong, and why."""
