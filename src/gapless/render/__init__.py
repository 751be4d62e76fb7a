"""How is a report shown? One neutral document, sibling renderers."""
