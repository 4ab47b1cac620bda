"""``explain evict``: which pods a kubelet would evict, decided from files, and why."""
