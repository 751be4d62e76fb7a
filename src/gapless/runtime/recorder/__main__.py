"""What runs in place of `gapless run` once its flags are parsed: the script, under a recorder."""

from __future__ import annotations

import sys

from gapless.runtime.recorder.script import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
