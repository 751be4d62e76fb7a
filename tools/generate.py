"""Are the files that are generated from the code up to date? Writes them; with `--check` only says which are not."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import completion_files
import doc_pages

ROOT = Path(__file__).resolve().parents[1]


def generated() -> dict[Path, str]:
    """Every generated file and what it must hold."""
    shells = ROOT / "src" / "gapless" / "cli" / "completion_files"
    docs = ROOT / "docs"
    return {
        shells / "gapless.bash": completion_files.bash(),
        shells / "_gapless": completion_files.zsh(),
        shells / "gapless.fish": completion_files.fish(),
        docs / "columns.md": doc_pages.columns(),
        **{docs / "rules" / name: page for name, page in doc_pages.rules().items()},
    }


def stale(files: dict[Path, str]) -> list[Path]:
    """The files that are missing, differ, or stand for a check that is gone."""
    wrong = [path for path, text in files.items() if not path.is_file() or path.read_text("utf-8") != text]
    return wrong + [path for path in sorted((ROOT / "docs" / "rules").glob("*.md")) if path not in files]


def main() -> int:
    """Write or check."""
    files = generated()
    wrong = stale(files)
    if "--check" in sys.argv[1:]:
        for path in wrong:
            sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: run `make generate`\n")
        return 1 if wrong else 0
    for path in wrong:
        if path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], "utf-8")
        else:
            path.unlink()
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
