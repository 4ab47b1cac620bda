"""Bytes and values: requests, bodies, options, errors, negotiation, protobuf."""
