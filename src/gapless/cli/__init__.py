"""One verb a file; imports inside run()."""
