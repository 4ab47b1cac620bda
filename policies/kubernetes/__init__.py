"""What decisions read: snapshot, quantities, selectors, releases, storage, validation of names."""
