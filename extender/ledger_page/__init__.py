"""The page of the ledger: which pods were preempted, why, and what would have spared them."""
