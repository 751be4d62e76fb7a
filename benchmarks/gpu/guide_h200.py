"""Does every right form of docs/sync-guide.md run on this machine's GPU, and every raising one raise what it says?

Run as `PYTHONPATH=src python benchmarks/gpu/guide_h200.py`; needs torch alone. Prints one line a block, and writes
$OUT/guide_h200.json; exit code 1 if a block did otherwise. On a CPU the blocks that need a GPU are skipped.
"""

from __future__ import annotations

import builtins
import json
import os
import re
import sys
from pathlib import Path

import torch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sync-guide.md"
PART = re.compile(r"^### (?P<title>[^\n]+)$|^```python (?P<words>[^\n]+)\n(?P<code>.*?)^```$", re.M | re.S)


def outcome(words: list[str], code: str, line: int, setup: str) -> str:
    names: dict[str, object] = {}
    exec(setup, names)
    expected = words[0].partition("=")[2]
    try:
        exec(compile("\n" * (line - 1) + code, str(PAGE), "exec"), names)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    except Exception as error:
        if expected and isinstance(error, getattr(builtins, expected)):
            return "pass"
        return f"FAIL {type(error).__name__}: {error}"
    return f"FAIL did not raise {expected}" if expected else "pass"


def main() -> int:
    text = PAGE.read_text("utf-8")
    rows, title, setup = [], "", ""
    for part in PART.finditer(text):
        if part["title"]:
            title = part["title"]
            continue
        words, line = part["words"].split(), text[: part.start()].count("\n") + 2
        if words[0] == "setup":
            setup = part["code"]
        elif words[0] != "wrong":
            skip = "gpu" in words and not torch.cuda.is_available()
            result = "skipped (needs a GPU)" if skip else outcome(words, part["code"], line, setup)
            rows.append({"line": line, "form": title, "kind": words[0], "result": result})
            print(f"{line:>4} {words[0]:<28} {result:<8} {title}", flush=True)
    count = {kind: sum(r["result"].startswith(kind) for r in rows) for kind in ("pass", "FAIL", "skipped")}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"{device}, torch {torch.__version__}: {count}")
    out = os.environ.get("OUT")
    if out:
        made = {"device": device, "torch": torch.__version__, "count": count, "rows": rows}
        (Path(out) / "guide_h200.json").write_text(json.dumps(made, indent=1), encoding="utf-8")
    return 1 if count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
