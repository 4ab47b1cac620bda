"""The inputs of decisions, kept so that they can be decided again."""
