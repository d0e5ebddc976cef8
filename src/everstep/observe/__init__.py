"""What happened in a run: events, and how long each recovery took. Plain data; knows nothing of how it came about."""
