"""What holds for every object: metadata, conditions, patches, versions."""
