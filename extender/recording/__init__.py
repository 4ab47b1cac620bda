"""Recordings: the informer events of an API server as lines of a file.

docs/record-replay.md describes the format and its rules. This package records a server
(:mod:`extender.recording.recorder`) and reads and writes files (:mod:`extender.recording.files`);
fakeapi also records its own store, and replays recordings.
"""
