"""What are the parts of a kernel's C++ name: the function, its template arguments, the functor inside, the dtype?

Pure text work. Names are hostile input: only the first `MAX_CHARS` characters are looked at, every expression used
here is linear in the length of the text.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

MAX_CHARS = 4096
_MAX_HEAD = 1024
_CANONICAL_CHARS = 400


@dataclass(frozen=True, slots=True)
class CppName:
    """A demangled name split up: `head` without return type, template and call arguments; `args` are those of its last
    template argument list, '' if there is none; `params` the rest from the first bracket of the call on."""

    head: str
    args: str
    params: str


_BRACKET = re.compile(r"[<>()]")
_MANGLED_PART = re.compile(r"(\d{1,3})([A-Za-z_].*)", re.S)


def split_cpp(name: str) -> CppName:
    """Split one kernel name; text that is no C++ name comes back as its own head."""
    text = name[:MAX_CHARS].replace("(anonymous namespace)::", "").replace("operator()", "operator_call")
    if text.startswith("_Z"):
        return _split_mangled(text)
    angle = paren = start = 0
    args_start, end = 0, len(text)
    plain: list[str] = []
    args = ""
    for match in _BRACKET.finditer(text):
        mark, at = match.group(), match.start()
        if mark == "(":
            if angle == 0 and paren == 0:
                end = at
                break
            paren += 1
        elif mark == ")":
            paren = max(0, paren - 1)
        elif paren:
            continue
        elif mark == "<":
            if angle == 0:
                plain.append(text[start:at])
                args_start = at + 1
            angle += 1
        elif angle and text[at - 1] != "-":
            angle -= 1
            if angle == 0:
                args, start = text[args_start:at], at + 1
    if angle:
        args = text[args_start:end]
    else:
        plain.append(text[start:end])
    words = "".join(plain).split() if plain[1:] or end < len(text) else [text.removeprefix("void ").strip()]
    head = words[-1] if words and words[-1] else text
    return CppName(shorten(head, _MAX_HEAD), args.strip(), text[end:])


def _split_mangled(text: str) -> CppName:
    """The nested name of an Itanium-mangled symbol (`_ZN5aiter24add_rmsnorm_quant_kernelI...`); the rest is `args`."""
    rest = text[2:].removeprefix("N").removeprefix("K")
    parts: list[str] = []
    while (match := _MANGLED_PART.match(rest)) and len(parts) < 16:
        # A length and a name that starts with a digit cannot be told apart; the length is what the mangler wrote.
        size = int(match.group(1))
        parts.append(match.group(2)[:size])
        rest = match.group(2)[size:]
    return CppName("::".join(parts) or text, rest, "")


def first_args(args: str, count: int) -> list[str]:
    """The first `count` top-level template arguments."""
    found: list[str] = []
    depth = start = 0
    for match in re.finditer(r"[<>(){},]", args):
        mark, at = match.group(), match.start()
        if mark in "<({":
            depth += 1
        elif mark in ">)}":
            depth -= 1
        elif depth == 0:
            found.append(args[start:at].strip())
            start = at + 1
            if len(found) == count:
                return found
    found.append(args[start:].strip())
    return found


# Alternatives are tried in this order at each position; the first position that names a type wins.
_ANYWHERE = (("bf16", r"[bB][fF](?:loat)?16|DF16b"), ("fp8", r"E4m3|E5m2"), ("fp4", r"E2m1"), ("opaque", r"OpaqueType"))
_WHOLE_WORD = (
    ("fp8w", r"[fF]loat8\w*|float_e[45]m[23]\w*|fp8\w*|e[45]m[23]\w*"),
    ("fp4w", r"float_e2m1\w*|e2m1\w*|fp4\w*"),
    ("tf32", r"tf32|tfloat32"),
    ("fp16", r"[hH]alf|fp16|float16|f16"),
    ("complex", r"complex|float2|double2"),
    ("fp64", r"double|fp64|f64"),
    ("fp32", r"float|fp32|f32"),
    ("int8", r"(?:un)?signed char|int8|i8"),
    ("bool", r"bool"),
    ("int64", r"unsigned long|long|int64"),
    ("int16", r"short|int16"),
    ("int32", r"unsigned int|int|int32"),
)
_DTYPE = re.compile(
    "|".join(f"(?P<{name}>{words})" for name, words in _ANYWHERE)
    + "|(?<![A-Za-z0-9])(?:"
    + "|".join(f"(?P<{name}>(?:{words})(?![A-Za-z0-9]))" for name, words in _WHOLE_WORD)
    + ")"
)


def dtype_in(text: str) -> str | None:
    """The first element type in the text: bf16 fp16 fp32 tf32 fp64 fp8 fp4 int8 int16 int32 int64 bool complex."""
    match = _DTYPE.search(text)
    if match is None or match.lastgroup in (None, "opaque"):
        return None
    return match.lastgroup.removesuffix("w")


_MATH_DTYPES = frozenset(("bf16", "fp8", "fp4", "tf32", "fp16", "complex", "fp64", "fp32", "int8"))


def math_dtype_in(text: str) -> str | None:
    """The first type in the text that matrix products are made of; index types (int, long, bool) are passed over."""
    for match in _DTYPE.finditer(text):
        found = (match.lastgroup or "").removesuffix("w")
        if found in _MATH_DTYPES:
            return found
    return None


def functor_text(args: str) -> str:
    """The functor of an elementwise or reduction wrapper: the first template argument that is not a number."""
    for arg in first_args(args, 4):
        if not arg[:1].isdigit():
            return arg
    return ""


_NUMBERED = re.compile(r"#\d+")
_NOISE = (
    (re.compile(r"\b(\d+)u?l?l?\b"), r"\1"),
    (re.compile(r"(?:std::array|at::detail::Array)<char\*, (\d+)>"), r"array<\1>"),
    (re.compile(r"0x[0-9a-fA-F]+"), "0x"),
    (re.compile(r"at::native::|c10::|at::cuda::detail::|at::detail::|at_cuda_detail::"), ""),
    (re.compile(r"TensorIteratorBase"), "TensorIterator"),
    (re.compile(r"\s*([<>,])\s*"), r"\1"),
)
_TRAILING_ID = re.compile(r"(?:_kernel\d+_\d+|_[0-9a-f]{16,}|_\d+)$")


def plain_head(head: str) -> str:
    """The function's name without inline version namespaces, addresses and trailing ids that change from run to run."""
    text = re.sub(r"ROCPRIM_\w+::|at_cuda_detail::|__4::|0x[0-9a-fA-F]+", "", head)
    return _TRAILING_ID.sub("", text)


def plain_args(args: str) -> str:
    """Template arguments without what differs between builds of the same kernel."""
    text = _NUMBERED.sub("", args)
    for pattern, new in _NOISE:
        text = pattern.sub(new, text)
    return text


def shorten(text: str, limit: int = _CANONICAL_CHARS) -> str:
    """At most `limit` characters; a cut text keeps a checksum of the whole, so that different names stay different."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - 9]}~{zlib.crc32(text.encode('utf-8', 'replace')):08x}"
