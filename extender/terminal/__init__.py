"""What all commands share: options, stderr, stop signals, tables."""
