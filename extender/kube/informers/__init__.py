"""Reflector, shared informers, indexers, WatchList, consistency."""
