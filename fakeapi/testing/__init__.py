"""FakeCluster in every form; faults; extenders in tests."""
