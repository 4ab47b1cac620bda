"""Tables and other representations of an answer."""
