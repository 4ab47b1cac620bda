"""Which pods of a node are evicted: what is left after reprieving, or the cheapest of all."""
