"""Starts, watches and kills worker processes: one small seam (seam.py), one file for each way of doing it."""
