"""The process of `reprieve controllers`: its controller manager and webhook server."""
