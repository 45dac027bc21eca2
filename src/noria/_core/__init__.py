"""What every room stands on: errors, notices, lazy names, quoting of untrusted text."""
