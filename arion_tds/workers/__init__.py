"""Several processes that serve the same addresses: who starts them, and what they tell each other (docs/workers.md)."""
