"""What the eviction of a pod costs, and criteria that compare candidates by it."""
