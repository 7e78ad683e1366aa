"""What a scope holds, who owns each namespace, and the update/remove table. Pure."""
