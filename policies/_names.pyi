# What _names.c gives. A text is plain if it is a JSON array of strings as Go writes it, in ASCII,
# with nothing escaped.

# Where each name of a plain text begins, and where one more would, as uint32; else None.
def split(text: bytes | memoryview, /) -> bytes | None: ...

# A hash table of the places of names, whose text was split into `begins`.
def index(text: bytes | memoryview, begins: bytes, /) -> bytes: ...

# The place of each wanted name among those that `slots` index, as int64; None if one of them is not
# there, or comes twice. Raises ValueError for arguments that don't belong to each other.
def find(
    slots: bytes,
    text: bytes | memoryview,
    begins: bytes,
    wanted_text: bytes | memoryview,
    wanted_begins: bytes,
    /,
) -> bytes | None: ...
