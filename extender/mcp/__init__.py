"""Tools of the Model Context Protocol: decisions and their reasons, read only."""
