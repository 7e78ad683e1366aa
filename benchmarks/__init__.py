"""One command per figure: `python -m benchmarks.NAME` prints one JSON line. CPU of the gateway's own process."""
