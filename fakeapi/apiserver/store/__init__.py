"""Objects with versions and history; dry run."""
