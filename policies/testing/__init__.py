"""Clusters for tests: builders of the values that decisions read, and strategies that draw them.

It needs the extra ``testing``.
"""
