"""gateway.yaml: its keys (file), the kinds of their values (values), and how it is judged (judging)."""
