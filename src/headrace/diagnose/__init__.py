"""Looking at models and pipelines from outside: their quality, their faults, and the causes."""
