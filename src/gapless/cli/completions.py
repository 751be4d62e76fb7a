"""What does `gapless completions SHELL` do? It prints a static completion file: completing never starts Python."""

from __future__ import annotations

import argparse
from importlib.resources import files

from gapless.cli import output

NAME = "completions"
HELP = "print the completion file of a shell"

FILES = {"bash": "gapless.bash", "zsh": "_gapless", "fish": "gapless.fish"}

_WHERE = """\
bash: gapless completions bash > ~/.local/share/bash-completion/completions/gapless
zsh:  gapless completions zsh > DIR/_gapless, where DIR is in $fpath
fish: gapless completions fish > ~/.config/fish/completions/gapless.fish"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument("shell", metavar="{bash,fish,zsh}", choices=sorted(FILES), help="for which shell")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _WHERE


def run(args: argparse.Namespace) -> int:
    """Print the file."""
    output.write((files("gapless.cli") / "completion_files" / FILES[args.shell]).read_text("utf-8"))
    return 0
