"""The base of every room: errors, notices, lazy names, quoting of untrusted text."""
