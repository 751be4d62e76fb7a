"""One question a file: pure functions from tables to tables."""
