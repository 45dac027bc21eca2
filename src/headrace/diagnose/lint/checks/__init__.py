"""Checks of files that neither reading nor a dry run makes; each yields notices with a rule."""
