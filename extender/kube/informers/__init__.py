"""Local caches of resources: reflectors, indexers, shared informers, and their consistency."""
