"""Tuning: a search for the order and weights of a policy's criteria, validated on held-out time."""
