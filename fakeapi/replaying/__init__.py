"""Replaying: a recording played into a world, and what came of it held against the recording.

Which lines are played and which are left to parts of the control plane is data
(:mod:`fakeapi.replaying.parts`); see docs/record-replay.md.
"""
