"""The commands that generate the tables of built-in kinds."""
