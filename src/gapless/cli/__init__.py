"""What can be typed after `gapless`? One verb a file, found by the table in `cli.registry`.

To add a verb: write `cli/<verb>.py` with

    NAME: str                                            the word to type
    HELP: str                                            one line, the same as in the registry
    def add_arguments(parser: argparse.ArgumentParser)   its own flags; `cli.options` has the shared ones
    def run(args: argparse.Namespace) -> int             0 done, 1 a gate was breached; imports go inside

add its line to `registry.VERBS`, then `make generate` (completion files). Trouble is raised as `GaplessError`: its
message is the one line on stderr and its `exit_code` the exit code. Nothing heavy (polars, rich, msgspec, torch) may be
imported at a verb's module level: `gapless --help` must feel instant.
"""

from gapless.cli.entry import main

__all__ = ["main"]
