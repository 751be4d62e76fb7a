"""How does a file become typed tables? One reader a format; nothing here knows what the events mean for performance."""
