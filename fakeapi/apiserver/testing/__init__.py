"""/_fakeapi/, request log, object history."""
