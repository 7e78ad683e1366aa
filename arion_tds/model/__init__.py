"""Nouns: frozen values that every stage shares. Nothing here reads a clock, a socket or another package."""
