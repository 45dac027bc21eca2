"""`headrace lint`: everything that files tell about a set-up before it runs.

The findings are those of the run: what reading a config remarks, what a dry run decides and refuses
(`dry_run`), and checks of files that a run does not make. Each has the id of a rule;
`rules/*.toml` explain the rules.

Start at `linting.py`.
"""
