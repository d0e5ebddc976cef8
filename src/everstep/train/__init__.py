"""A reference trainer on everstep.elastic: a Llama-style decoder on real text, with checkpoints, snapshots and elastic resizing."""
