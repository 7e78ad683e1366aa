"""From wire bytes and config JSON to model values, or to sentences that say what is wrong. Pure."""
