"""List pages and watch cursors."""
