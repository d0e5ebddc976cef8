"""Between the protocol's messages and the head's objects, both ways. No state, no requests."""
