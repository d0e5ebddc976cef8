"""Elastic training for JAX: one Python process, many workers, and a training loop that outlives its machines.

A program needs no import of this package: `everstep run -- python train.py`.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
