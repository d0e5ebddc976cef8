"""Data of any size, beside the channel: blocking sockets, a thread per connection, no copies where the kernel allows it.

A client opens a connection, sends the token of the run, and then any number of requests, one after the other:
    GET key                      → the bytes of that key
    PUT key offset layout        → go on, or why not; then the bytes, and an answer when they are in place
Each answer is a status (a code of errors.py, 1 byte), a length (8 bytes) and that many bytes: data, or the message of the error.
"""

from everstep.wire.bulk.client import Client
from everstep.wire.bulk.protocol import Buffer, Dimension
from everstep.wire.bulk.server import Lent, Server

__all__ = ["Buffer", "Client", "Dimension", "Lent", "Server"]
