"""Spans of requests, calls and pushes, and their way to a collector over OTLP/HTTP."""
