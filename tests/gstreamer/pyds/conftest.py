"""Every call of `pyds` leaves the process of its host as it was."""

from tests.guest import as_found as as_found
