"""The operator's side: health, metrics, dumps."""
