"""Authentication, impersonation, authorization, RBAC, tokens."""
