"""How is one broken JSON object made readable? Repairs the defects that trace writers are known to leave.

The text is walked once, with a stack instead of recursion. A string ends at the first quote that something structural
follows; `name` is special, since kernel and file names contain such sequences: it ends before the next known key.
"""

from __future__ import annotations

import re

MAX_DEPTH = 64
"""Objects nested deeper than this are not repaired; real events have at most four levels."""

QUOTE = "unescaped-quote"
ESCAPE = "invalid-escape"
CONTROL = "control-character"
BARE_WORD = "bare-nan"
COMMA_DECIMAL = "comma-decimal"
STRAY_COMMA = "stray-comma"

_NAME_END = re.compile(r'"\s*(?:,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|s|bp|bind_id)"\s*:|\}\s*\Z)')
_BLANK = re.compile(r"\s*")
_BARE = re.compile(r'[^\s,:\[\]{}"]+')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_DECIMALS = re.compile(r",(\d+)(?=\s*[,}\]])")
_AFTER_KEY = re.compile(r"\s*:")
_AFTER_VALUE = re.compile(r"\s*(?:[,}\]]|\Z)")
_ESCAPES_FINE = re.compile(r'(?:[^\\]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+\Z')
_CONTROLS = re.compile(r"[\x00-\x1f]")
_INNER_QUOTE = re.compile(r'(?<!\\)((?:\\\\)*)"')


class BeyondRepairError(Exception):
    """No repair is known for this text."""


def repair(text: str) -> tuple[str, dict[str, str]]:
    """Well-formed JSON for one object, and the place of the first defect of each kind; raises BeyondRepairError."""
    return _Walk(text).run()


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self.kinds: dict[str, str] = {}
        self.stack: list[str] = []

    def run(self) -> tuple[str, dict[str, str]]:
        text = self.text
        before = ""  # the last structural token written: one of `{ [ , :`, or `v` for a value, `k` for a key
        while True:
            self.at = self._skip(self.at)
            if self.at >= len(text):
                break
            char = text[self.at]
            if char in "{[":
                if before not in ("", "[", ",", ":") or len(self.stack) >= MAX_DEPTH:
                    raise BeyondRepairError
                self.stack.append(char)
                self.out.append(char)
                self.at += 1
                before = char
            elif char in "}]":
                before = self._close(char, before)
                if not self.stack:
                    break
            elif char == ",":
                self.at += 1
                if before in (",", "{", "["):
                    self._found(STRAY_COMMA)
                    continue
                self._complete(before)
                self.out.append(",")
                before = ","
            elif char == ":":
                if before != "k":
                    raise BeyondRepairError
                self.out.append(":")
                self.at += 1
                before = ":"
            else:
                before = self._scalar(char, before)
        if self.stack or not self.out or text[self.at :].strip():
            raise BeyondRepairError
        return "".join(self.out), self.kinds

    def _found(self, kind: str, where: str = "") -> None:
        self.kinds.setdefault(kind, where or self.text[max(0, self.at - 40) : self.at + 20])

    def _skip(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def _complete(self, before: str) -> None:
        """A key without a value gets null."""
        if before == ":":
            self._found(STRAY_COMMA)
            self.out.append("null")
        elif before == "k":
            raise BeyondRepairError

    def _close(self, char: str, before: str) -> str:
        if not self.stack or self.stack[-1] != ("{" if char == "}" else "["):
            raise BeyondRepairError
        if before == ",":
            self._found(STRAY_COMMA)
            self.out.pop()
        self._complete(before)
        self.stack.pop()
        self.out.append(char)
        self.at += 1
        return "v"

    def _scalar(self, char: str, before: str) -> str:
        in_object = bool(self.stack) and self.stack[-1] == "{"
        if before in ("k", "v") or not self.stack:
            raise BeyondRepairError
        is_key = in_object and before != ":"
        if char == '"':
            self._string(is_key)
            return "k" if is_key else "v"
        if is_key:
            raise BeyondRepairError
        word = _BARE.match(self.text, self.at)
        if word is None:
            raise BeyondRepairError
        self.at = word.end()
        self.out.append(self._bare(word.group(), in_object))
        return "v"

    def _bare(self, word: str, in_object: bool) -> str:
        if word in ("true", "false", "null"):
            return word
        if _NUMBER.match(word):
            decimals = _DECIMALS.match(self.text, self.at) if in_object and word.lstrip("-").isdecimal() else None
            if decimals:
                self.at = decimals.end()
                self._found(COMMA_DECIMAL)
                return f"{word}.{decimals.group(1)}"
            return word
        self._found(BARE_WORD)
        return "null"

    def _string(self, is_key: bool) -> None:
        start = self.at + 1
        end = -1
        if not is_key and len(self.stack) == 1 and self.out[-2:] == ['"name"', ":"]:
            found = _NAME_END.search(self.text, start)
            end = found.start() if found else -1
        if end < 0:
            after = _AFTER_KEY if is_key else _AFTER_VALUE
            for quote in _INNER_QUOTE.finditer(self.text, start):
                if after.match(self.text, quote.end()):
                    end = quote.end() - 1
                    break
        if end < 0:
            raise BeyondRepairError
        self.out.append(f'"{self._escaped(self.text[start:end])}"')
        self.at = end + 1

    def _escaped(self, body: str) -> str:
        if "\\" in body and not _ESCAPES_FINE.match(body):
            # The writer escaped nothing: every backslash is meant literally, as in a Windows path.
            self._found(ESCAPE, body)
            body = body.replace("\\", "\\\\")
        if '"' in body and _INNER_QUOTE.search(body):
            self._found(QUOTE, body)
            body = _INNER_QUOTE.sub(r'\1\\"', body)
        if _CONTROLS.search(body):
            self._found(CONTROL, body)
            body = _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", body)
        return body
