"""Recordings: what an informer sees of an API server, as lines in a file, and back.

Format and rules are described in docs/record-replay.md. Here they are written by following a server
(:mod:`extender.recording.recorder`) and read (:mod:`extender.recording.files`); fakeapi writes them
out of its store, and plays them.
"""
