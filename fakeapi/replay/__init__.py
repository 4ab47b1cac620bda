"""Replay: plays a recording into a world, and compares the resulting state with the recording.

Data determines which events are played and which are left to control-plane components
(:mod:`fakeapi.replay.component_effects`); see docs/record-replay.md.
"""
