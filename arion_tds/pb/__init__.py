"""Generated protobuf code. Never edited: `make proto`."""
