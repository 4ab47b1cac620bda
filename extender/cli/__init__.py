"""The commands that do not need fakeapi: serve, explain, advise, record, validate."""
