"""Delta xDS, the client side: pure state per type and per stream, and the gRPC driver."""
