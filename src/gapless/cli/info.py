"""What does `gapless info TRACE` do? It says what the file holds and what it can and cannot answer."""

from __future__ import annotations

import argparse

from gapless.cli import options, output
from gapless.cli.sources import expand

NAME = "info"
HELP = "say what a trace file holds and what it can and cannot answer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's flags."""
    parser.add_argument("trace", nargs="+", metavar="TRACE", help="files, a folder, a glob; - is stdin")
    options.add_output(parser, ["text", "json", "markdown"])
    options.add_cache(parser)


def run(args: argparse.Namespace) -> int:
    """Describe every file."""
    pages = [_page(source.path, args) for source in expand(args.trace)]
    if args.format == "json":
        from gapless.render import json_

        output.write(json_.dumps(pages[0] if len(pages) == 1 else pages), args.output)
    else:
        output.write("\n".join(str(page) for page in pages), args.output)
    return 0


def _page(path: str, args: argparse.Namespace) -> object:
    from gapless.api.sibling import stack_file
    from gapless.cli.reading import load
    from gapless.render import info, json_, markdown, text
    from gapless.tables.coding import categories

    trace = load(path, args)
    rows = {name: frame.height for name, frame in trace.raw_tables().items()}
    rows["steps"] = sum(name.startswith("ProfilerStep#") for name in categories(trace.raw.ops["name"]))
    found = stack_file(trace.raw, path)
    beside = found.name if found is not None else None
    facts = (trace.meta, rows, trace.raw.issues.to_dicts(), trace.raw.set_aside.head(info.ROWS + 1).to_dicts(), beside)
    if args.format == "json":
        return json_.to_dict(info.to_dict(*facts))
    blocks = info.build_info(*facts)
    if args.format == "markdown":
        return markdown.draw(blocks)
    return text.draw(blocks, width=output.width(), color=args.output is None and output.color(args))
