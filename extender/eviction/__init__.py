"""``explain evict``: whom a kubelet would evict, read from files, and why."""
