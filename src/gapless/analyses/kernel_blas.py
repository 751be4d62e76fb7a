"""What does the name of a GEMM, convolution or attention kernel say: dtype, matrix units, tile, layout, architecture?

Each library has its own grammar: cuBLAS (`ampere_bf16_s16816gemm_..`, `nvjet_sm90_tst_..`, `sm90_xmma_..`), cutlass,
cuDNN, hipBLASLt/Tensile (`Cijk_..`), MIOpen (`igemm_..`), flash and memory-efficient attention. `dtype` is that of the
inputs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gapless.analyses.kernel_text import CppName, math_dtype_in


@dataclass(frozen=True, slots=True)
class MathTraits:
    """What the name tells; None where it does not."""

    dtype: str | None = None
    tensor_core: bool | None = None
    tile: str | None = None
    layout: str | None = None
    arch: str | None = None


_GENERATIONS = {
    "kepler": "sm35", "maxwell": "sm50", "pascal": "sm60", "volta": "sm70", "turing": "sm75", "ampere": "sm80",
    "ada": "sm89", "hopper": "sm90", "blackwell": "sm100",
}  # fmt: skip
_ARCH = re.compile(
    r"(?<![A-Za-z])(?:sm_?|Sm)(\d{2,3}[af]?)(?![0-9])|(?<=[a-z])Sm(\d{2,3}[af]?)|cutlass_(\d\d)_|ISA([0-9a-f]{3,4})(?=_)"
    r"|(?<![A-Za-z0-9])(gfx[0-9a-f]{3,4})|^(?:cudnn_)?(" + "|".join(_GENERATIONS) + r")_"
)
# One letter is the accumulator: s fp32, h fp16, i int32, d fp64; the digits are the shape of one matrix instruction.
_INSTRUCTION = re.compile(
    r"_?(?P<acc>[shid])(?P<shape>\d{3,6}|\d+x\d+x\d+)(?P<operand>tf32|bf16|f16)?(?:gemm|cudnn|fprop|dgrad|wgrad)"
)
_VECTOR = re.compile(r"(?:^|_)(?P<letter>gc|gz|[shdcz])(?:gemm|cudnn|gemv|fprop|dgrad|wgrad)")
_LETTERS = {"s": "fp32", "h": "fp16", "d": "fp64", "c": "complex", "z": "complex", "gc": "complex", "gz": "complex"}
_XMMA = re.compile(r"_((?:tf32|bf16|e4m3|e5m2|f16|f32|f64|i8)+)_((?:tf32|bf16|f16|f32|f64|i32)+)_")
_TILE = re.compile(r"(?:_tilesize|_MT|_bt|_t)?(?<![A-Za-z0-9.])(\d{1,3}x\d{1,3}(?:x\d{1,3})?)(?![0-9x])")
_NAMED_TILE = re.compile(r"(?:tilesize|_MT|_bt|_t)(\d{1,3}x\d{1,3}(?:x\d{1,3})?)(?![0-9])")
_BLAS_LAYOUT = re.compile(r"_([nt]{2,3})(?=_|$)")
_CONV_LAYOUT = re.compile(r"nhwc|nchw|ndhwc|ncdhw", re.IGNORECASE)
_NVJET = re.compile(r"^nvjet_(?:(sm\d+[af]?)_)?([a-z]+)_(\d+x\d+)_(\d+)x\d+_(?:.*_)?([NT]{3})?$")
_NVJET_TYPES = {"h": "fp16", "t": "bf16", "s": "tf32", "d": "fp64", "q": "fp8", "r": "fp8", "o": "fp4", "b": "int8"}
_TENSILE = re.compile(r"^Cijk_(A\w{3})_(B\w{3})_([A-Z0-9]+)")
_TENSILE_LAYOUT = {"Ailk": "n", "Alik": "t", "Bljk": "n", "Bjlk": "t"}
_TENSILE_TYPES = (
    ("I8", "int8"), ("F8", "fp8"), ("B8", "fp8"), ("X", "tf32"), ("B", "bf16"), ("H", "fp16"), ("S", "fp32"),
    ("D", "fp64"), ("C", "complex"), ("Z", "complex"),
)  # fmt: skip
_MATRIX_WORDS = re.compile(r"tensorop|wmma|wgmma|mma_|mfma|xdl|gtcx|tcgen05|umma|gmma|mmatensor", re.IGNORECASE)
_VECTOR_WORDS = re.compile(
    r"simt|Simt|ffma|gemv|gemmSN|gemmk1|convolve_sgemm|_alg0_engine|dgrad_engine|magma_|dot_kernel"
)


def arch_of(text: str) -> str | None:
    """The architecture a name was built for: sm90, sm100a, gfx942, ..."""
    match = _ARCH.search(text)
    if match is None:
        return None
    upper, camel, cutlass, isa, gfx, generation = match.groups()
    if generation:
        return _GENERATIONS[generation]
    if isa or gfx:
        return gfx or f"gfx{isa}"
    return f"sm{upper or camel or cutlass}"


def matmul_traits(name: CppName) -> MathTraits:
    """Traits of a GEMM kernel."""
    text = _subject(name)
    for reader in (_nvjet, _tensile, _trtllm):
        found = reader(text)
        if found is not None:
            return found
    dtype, units = _math(text, name)
    layout = _BLAS_LAYOUT.search(text)
    return MathTraits(dtype, units, _tile(text), layout.group(1) if layout else None, arch_of(text))


def convolution_traits(name: CppName) -> MathTraits:
    """Traits of a convolution kernel; FFT and Winograd transforms run on the vector units."""
    text = _subject(name)
    dtype, units = _math(text, name)
    if re.search(r"fft2d|winograd|flip_filter|complex", text, re.IGNORECASE):
        dtype, units = (dtype if dtype != "complex" else "fp32"), False
    layout = _CONV_LAYOUT.search(text)
    return MathTraits(dtype, units, _tile(text), layout.group().lower() if layout else None, arch_of(text))


def attention_traits(name: CppName) -> MathTraits:
    """Traits of a fused attention kernel. cuDNN writes `f16` for both 16-bit types, so its dtype stays None."""
    text = f"{name.head} {name.args}"
    dtype = None if "cudnn_generated" in name.head else math_dtype_in(text)
    tile = _TILE.search(name.head)
    flash = re.search(r"[Ff]lash_(?:fwd|bwd)_kernel_traits<\d+, (\d+), (\d+)", text)
    units = True if dtype in ("bf16", "fp16", "fp8") or "mma" in name.head else None
    shape = f"{flash.group(1)}x{flash.group(2)}" if flash else tile.group(1) if tile else None
    return MathTraits(dtype, units, shape, None, arch_of(text))


def _subject(name: CppName) -> str:
    """cutlass puts the telling name into a template argument."""
    return name.args if re.search(r"cutlass\w*::", name.head) and name.args else name.head


def _tile(text: str) -> str | None:
    match = _NAMED_TILE.search(text) or _TILE.search(text)
    return match.group(1) if match else None


def _math(text: str, name: CppName) -> tuple[str | None, bool | None]:
    """Input dtype and whether matrix units do the work."""
    types = _XMMA.search(text) if "xmma" in text else None
    if types is not None:
        dtype = (
            "tf32"
            if "tf32" in types.group(0)
            else math_dtype_in(f"_{re.sub(r'(?<=[0-9])(?=[a-z])', ' ', types.group(1))}")
        )
        return dtype, "ffma" not in text and (dtype != "fp32" or None)
    instruction = _INSTRUCTION.search(text)
    if instruction is not None:
        # Look for the operand type beside the instruction, then anywhere; without one 1688 means tf32.
        operand = instruction.group("operand")
        dtype = math_dtype_in(operand) if operand else math_dtype_in(text)
        if dtype is None:
            accumulator = instruction.group("acc")
            dtype = {"h": "fp16", "d": "fp64", "i": "int8"}.get(accumulator)
            if dtype is None and instruction.group("shape") == "1688":
                dtype = "tf32"
            elif dtype is None:
                dtype = "fp16"
        return dtype, True
    vector = _VECTOR.search(text)
    if vector is not None and not _MATRIX_WORDS.search(text):
        return math_dtype_in(text) or _LETTERS[vector.group("letter")], False
    dtype = math_dtype_in(text) or math_dtype_in(name.args)
    if _VECTOR_WORDS.search(text):
        return dtype, False
    return dtype, True if _MATRIX_WORDS.search(text) or _MATRIX_WORDS.search(name.args) else None


def _nvjet(text: str) -> MathTraits | None:
    """`nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN`: types A (B) C, tile MxN, tile K x stages, ..., layout."""
    match = _NVJET.match(text)
    if match is None:
        return None
    arch, types, tile, depth, layout = match.groups()
    return MathTraits(_NVJET_TYPES.get(types[0]), True, f"{tile}x{depth}", layout.lower() if layout else None, arch)


def _tensile(text: str) -> MathTraits | None:
    """`Cijk_Alik_Bljk_BBS_BH_.._MT256x192x64_MI16x16x1_.._ISA942_..`: index order, types, tile, matrix instruction."""
    match = _TENSILE.match(text)
    if match is None:
        return None
    dtype = next((d for code, d in _TENSILE_TYPES if match.group(3).startswith(code)), None)
    layout = _TENSILE_LAYOUT.get(match.group(1), "") + _TENSILE_LAYOUT.get(match.group(2), "")
    return MathTraits(dtype, "_MI" in text, _tile(text), layout if len(layout) == 2 else None, arch_of(text))


def _trtllm(text: str) -> MathTraits | None:
    """`bmm_<out>_<A><B>_<acc>_t128x16x256..`: grouped GEMMs of TensorRT-LLM and FlashInfer."""
    match = re.match(r"^(?:bmm|gemm)_[A-Z]\w{0,16}?_(\w{1,40}?)_Fp32_t(\d+x\d+x\d+)", text)
    if match is None:
        return None
    layout = _BLAS_LAYOUT.search(text.lower())
    return MathTraits(
        "fp8" if "E4m3" in match.group(1) else math_dtype_in(match.group(1)), True, match.group(2),
        layout.group(1) if layout else None, arch_of(text.replace("_sm", " sm")),
    )  # fmt: skip
