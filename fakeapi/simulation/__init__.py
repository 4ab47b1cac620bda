"""A world: API, store, clock, randomness, background tasks, store recorder."""
