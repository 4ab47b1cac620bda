"""Patches that clients and servers compute alike, as in apimachinery; pure."""
