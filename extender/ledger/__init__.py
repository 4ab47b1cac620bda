"""The ledger: every decision and what followed."""
