"""The terminal: options and output that all commands share, and tables of decisions."""
