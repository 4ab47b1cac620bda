"""``python -m fakeapi.kinds.generate``: generate the table of built-in kinds."""

from __future__ import annotations

from fakeapi.apiserver.kinds.generate import main

if __name__ == "__main__":
    main()
