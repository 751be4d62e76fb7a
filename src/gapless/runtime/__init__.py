"""Everything that imports torch; imports the model alone."""
