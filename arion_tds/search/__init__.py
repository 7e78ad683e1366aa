"""Finding tools by words. Pure."""
