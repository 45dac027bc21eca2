"""Writers of the generated pages and of the JSON schema of pipeline files."""
