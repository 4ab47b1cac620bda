"""Controller manager, webhook server, `reprieve controllers`."""
