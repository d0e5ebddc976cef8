"""The head's own gRPC service: status for the command line, host callbacks for everstep.jax_plugin."""
