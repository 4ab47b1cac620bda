"""Where a ledger is kept: its tables in SQLite or PostgreSQL, and what writes and reads them."""
