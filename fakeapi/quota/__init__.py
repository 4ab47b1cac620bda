"""What objects charge to ResourceQuotas, as pure functions of documents."""
