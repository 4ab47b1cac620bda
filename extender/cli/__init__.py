"""Commands that need no fake: serve, explain, advise, record, validate."""
