"""What would the program do if one thing changed? Program, engine, edits."""
