"""Configuration files: types, strict decoding, plugin args."""
