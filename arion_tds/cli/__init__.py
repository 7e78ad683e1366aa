"""The command line: one module per command, argparse, plain text where nobody looks and tables where somebody does."""
