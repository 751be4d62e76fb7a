"""Which faults does the trace show? One rule a file; its docstring is its documentation page."""
