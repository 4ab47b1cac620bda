# The functions of _packed_names.c. A text is plain if it is a JSON array of strings as Go writes
# it, in ASCII, with nothing escaped.

# Return the offset of each name of a plain text, and that of one more name, as uint32; else None.
def split(text: bytes | memoryview, /) -> bytes | None: ...

# Return a hash table of the positions of names; `begins` is the result of split(text).
def index(text: bytes | memoryview, begins: bytes, /) -> bytes: ...

# Return the position of each wanted name among those that `slots` index, as int64; None if one of
# them is missing, or occurs twice. Raise ValueError for arguments that do not belong together.
def find(
    slots: bytes,
    text: bytes | memoryview,
    begins: bytes,
    wanted_text: bytes | memoryview,
    wanted_begins: bytes,
    /,
) -> bytes | None: ...

# Return a plain text with the names whose byte of `marks` is not 0, and what split() returns for
# it. Raise ValueError for arguments that do not belong together.
def select(
    text: bytes | memoryview, begins: bytes, marks: bytes | memoryview, /
) -> tuple[bytes, bytes]: ...
