"""``python -m fakeapi.kinds.generate_wire``: generate the protobuf fields of built-in kinds."""

from __future__ import annotations

from fakeapi.apiserver.kinds.generate_protobuf import main

if __name__ == "__main__":
    main()
