"""Who is calling (JWT) and what they may use (RBAC)."""
