"""What kind of work is a GPU activity, read from its name alone?

`decode` is pure and runs once per distinct name. The name tells what was built into the kernel, not how it was used:
sizes come from the launching op. A plain GEMM inside a convolution (FFT or im2col algorithms) is named, and filed,
as a GEMM.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from gapless.analyses import kernel_blas, kernel_functors, kernel_text
from gapless.analyses.kernel_families import Family, family_of_head, family_of_shell
from gapless.analyses.kernel_text import CppName

SHORT_CHARS = 60


@dataclass(frozen=True, slots=True)
class KernelIdentity:
    """What a name says.

    family: see `kernel_families`. operation: what a generic kernel applies: add, gelu, sum, fused_adam, or ''.
    dtype: of the inputs: bf16 fp16 fp32 tf32 fp8 fp4 fp64 int8 int16 int32 int64 bool complex, None if not named.
    tensor_core: matrix units used; None for work that has no use for them, or where the name does not tell.
    tile (128x256x64), layout (nn, tn, nhwc), arch (sm90, gfx942): None where not named.
    fused_ops: what Inductor put into a Triton kernel. direction: fwd or bwd of an attention kernel.
    helper: a small kernel that serves a bigger one (split-K sum, offsets, filter transforms).
    cast: an elementwise copy that converts between dtypes; None if the name does not tell or it is no copy.
    canonical: equal for two builds or recordings of the same kernel. short: a label for people, at most 60 characters.
    """

    family: Family
    operation: str
    dtype: str | None
    tensor_core: bool | None
    tile: str | None
    layout: str | None
    arch: str | None
    fused_ops: tuple[str, ...]
    direction: Literal["fwd", "bwd"] | None
    helper: bool
    cast: bool | None
    canonical: str
    short: str


_TRITON = re.compile(r"^triton_?(poi|red|per|tem|for|spl|mm)?(?:_fused)?_(.*)$", re.S)
_TRITON_KINDS = {"poi": "pointwise", "red": "reduction", "per": "reduction", "tem": "template", "for": "foreach",
                 "spl": "scan", "mm": "template"}  # fmt: skip
_OLD_TRITON_SIGNATURE = re.compile(r"_\d[\ddec]*$")
# Inductor joins op names with '_', and names contain '_': known long names first, then single words.
_FUSED_WORDS = re.compile(
    r"_to_copy|_unsafe_view|_unsafe_index(?:_put)?|_softmax_backward_data|_log_softmax(?:_backward_data)?|_softmax|"
    r"_safe_softmax|_scaled_dot_product_\w+?_attention|native_layer_norm_backward|native_layer_norm|native_group_norm|"
    r"native_batch_norm(?:_backward)?|_native_batch_norm_legit(?:_functional|_no_training)?|native_dropout(?:_backward)?|"
    r"embedding_dense_backward|convolution_backward|gelu_backward|silu_backward|tanh_backward|sigmoid_backward|"
    r"threshold_backward|nll_loss_(?:forward|backward)|avg_pool2d(?:_backward)?|max_pool2d\w*|constant_pad_nd|"
    r"index_put|index_select|index_add|masked_fill|bitwise_(?:and|or|xor|not)|logical_(?:and|or|xor|not)|scalar_tensor|"
    r"new_(?:zeros|ones|full|empty)|(?:zeros|ones|full|empty|rand|randn)_like|slice_scatter|slice_backward|"
    r"select_(?:scatter|backward)|scatter_add|split_with_sizes|(?:copy|add|mul|div|sub|fill|squeeze|unsqueeze|clamp|relu|silu)_(?=_|$)|lift_fresh|linalg_vector_norm|"
    r"prims_\w+?(?=_|$)|var_mean|flex_attention(?:_backward)?|all_gather_into_tensor|"
    r"reduce_scatter_tensor|all_reduce|wait_tensor|repeat_interleave|cumsum|rms_norm|layer_norm|cross_entropy|"
    r"[a-z][a-z0-9]*"
)
_NCCL = re.compile(r"^(?:ncclDev(?:Kernel)?|ncclKernel|rcclKernel|ncclKernelMain)_?([A-Za-z]*)_?(.*)$")
_COLLECTIVE_WORD = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send_?recv|cross_device_reduce", re.I
)
_BACKWARD = re.compile(r"bwd|bprop|[Bb]ackward|cutlassB|compute_dot_do_o|convert_dq|Bwd|_dq_|_dkdv|dk_dv")
_HELPER = re.compile(
    r"splitKreduce|splitK_reduce|reduce_1Block|epilogue::impl|compute\w*Offsets|init_device_workspace|flip_filter|generateWinograd|"
    r"winogradForward(?:Data|Filter|Output)|winogradWgrad(?:Data|Delta|Output)|im2col|col2im|compute_dot_do_o|"
    r"convert_dq_to_16bits|bwd_preprocess|MergeStates|attention_\w*reduce|fft2d_|combine_kernel|scalePackedTensor|"
    r"ComputeFusedParams|compute_num_of_partial|krn_partial|partial_segment|InitKernel|ExclusiveSum|Histogram|lpnorm_cleanup"
)


@lru_cache(maxsize=8192)
def decode(name: str) -> KernelIdentity:
    """Read one activity name."""
    text = name.strip()[: kernel_text.MAX_CHARS]
    if text.startswith(("Memcpy", "Memset")):
        return _make("memcpy" if text.startswith("Memcpy") else "memset", canonical=text, short=text)
    triton = _TRITON.match(text)
    if triton is not None:
        return _decode_triton(text, triton)
    cpp = kernel_text.split_cpp(text)
    family = family_of_shell(cpp.head, cpp.args) or _family(cpp)
    if family in ("gemm", "convolution", "attention"):
        return _decode_math(family, cpp)
    if family == "collective":
        return _decode_collective(cpp)
    return _decode_generic(family, cpp)


def _family(cpp: CppName) -> Family:
    last = cpp.head.rpartition("::")[2]
    if last in kernel_functors.ELEMENTWISE:
        return _elementwise_family(cpp, last)
    found = family_of_head(cpp.head)
    if found is not None:
        return found
    # A user's own Triton kernel of torch 2.0-2.2 keeps its signature as a suffix.
    return "triton" if _OLD_TRITON_SIGNATURE.search(cpp.head) and not cpp.args else "other"


def _elementwise_family(cpp: CppName, wrapper: str) -> Family:
    """A wrapper's family is that of its functor: most are pointwise, some copy, index, normalise or draw numbers."""
    operation = kernel_functors.operation(cpp)
    if wrapper == "index_elementwise_kernel":
        return "embedding"
    if operation == "copy" or re.search(r"float(?:8|16)\w*_copy|_to_float|tofloat32", operation):
        return "copy"
    found = family_of_head(operation) if operation else None
    return found if found in ("normalization", "random", "embedding", "softmax", "pooling", "layout") else "pointwise"


def _decode_generic(family: Family, cpp: CppName) -> KernelIdentity:
    last = cpp.head.rpartition("::")[2]
    dtype = kernel_text.dtype_in(cpp.args) or kernel_text.dtype_in(cpp.head) or kernel_text.dtype_in(cpp.params)
    cast: bool | None = None
    if last in kernel_functors.ELEMENTWISE:
        operation = kernel_functors.operation(cpp)
        cast = kernel_functors.casts(cpp) if family == "copy" else None
        dtype = kernel_functors.functor_dtype(cpp)
        label = f"{operation or 'elementwise'}{'' if dtype is None else ' ' + dtype}"
        canonical = f"{last}<{','.join(filter(None, (operation or kernel_text.plain_args(cpp.args), dtype)))}>"
        short = f"{label} ({'cast, ' if cast else ''}{last.removesuffix('_kernel').replace('_', ' ')})"
    elif last == "reduce_kernel":
        operation = kernel_functors.operation(cpp)
        canonical = f"{last}<{','.join(filter(None, (operation or kernel_text.plain_args(cpp.args), dtype)))}>"
        short = f"reduce {operation} {dtype or ''}".strip()
    elif last == "multi_tensor_apply_kernel":
        operation = kernel_functors.foreach_operation(cpp)
        dtype = kernel_text.dtype_in(cpp.args.partition("Functor<")[2]) or dtype
        canonical = f"{last}<{','.join(filter(None, (operation, dtype)))}>"
        short = f"{operation} {dtype or ''} (multi tensor)".replace("  ", " ")
    else:
        operation = kernel_functors.random_operation(cpp) if family == "random" else ""
        canonical = _canonical(cpp)
        short = f"{operation or kernel_text.plain_head(last)} {dtype or ''}".strip()
        if family == "copy" and "CastTensor" in last:
            cast = True
        if family == "layout" and not cpp.args:
            # MIOpen writes `half` for every 16-bit type.
            dtype, short = None, kernel_text.plain_head(last)
    return _make(
        family, operation, dtype, arch=kernel_blas.arch_of(cpp.head), helper=_HELPER.search(cpp.head) is not None,
        cast=cast, canonical=canonical, short=short,
    )  # fmt: skip


def _decode_math(family: Literal["gemm", "convolution", "attention"], cpp: CppName) -> KernelIdentity:
    read = {
        "gemm": kernel_blas.matmul_traits,
        "convolution": kernel_blas.convolution_traits,
        "attention": kernel_blas.attention_traits,
    }[family]
    traits = read(cpp)
    head = f"{cpp.head}<{cpp.args[:200]}"
    backward = _BACKWARD.search(head) if family == "attention" else None
    direction: Literal["fwd", "bwd"] | None = None
    if family == "attention":
        direction = "bwd" if backward else "fwd"
    words = [family, direction or "", traits.dtype or "", traits.tile or "", traits.layout or "", f"({_library(cpp)})"]
    if traits.tensor_core is False and family != "attention":
        words.insert(3, "no tensor cores")
    return _make(
        family, "", traits.dtype, traits.tensor_core, traits.tile, traits.layout, traits.arch, (), direction,
        _HELPER.search(cpp.head) is not None, None, _canonical(cpp), " ".join(filter(None, words)),
    )  # fmt: skip


_LIBRARIES = (
    ("cuDNN", r"cudnn|winograd|fft2d|implicit_convolve|_engine$|cask|flip_filter"), ("cutlass", r"cutlass"),
    ("nvjet", r"^nvjet"), ("hipBLASLt", r"^Cijk"), ("MIOpen", r"^igemm|[Mm][Ii][Oo]pen"), ("flash", r"[Ff]lash"),
    ("paged", r"paged"), ("CK", r"^ck|::ck"), ("aiter", r"aiter"), ("aotriton", r"^attn_fwd|^bwd_"),
    ("FlashInfer", r"^bmm_|fmhaSm|Batch(?:Prefill|Decode)"), ("split-K sum", r"splitKreduce"),
    ("gemv", r"gemv|dot_kernel|reduce_1Block"), ("cuBLAS", r"cublas|xmma|gemm|^(?:volta|turing|ampere|maxwell)_"),
)  # fmt: skip


def _library(cpp: CppName) -> str:
    found = next((label for label, pattern in _LIBRARIES if re.search(pattern, cpp.head)), None)
    return found or kernel_text.plain_head(cpp.head.rpartition("::")[2])[:24]


def _decode_collective(cpp: CppName) -> KernelIdentity:
    """`ncclDevKernel_AllReduce_Sum_bf16_RING_LL` and older `ncclKernel_AllReduce_RING_LL_Sum_float`."""
    match = _NCCL.match(cpp.head)
    word = match.group(1) if match else None
    if not word:
        named = _COLLECTIVE_WORD.search(cpp.head)
        word = named.group() if named else cpp.head.rpartition("::")[2]
    dtype = kernel_text.dtype_in(match.group(2) if match else f"{cpp.head} {cpp.args}")
    label = f"nccl {word} {match.group(2)}" if match else f"{word} {dtype or ''} ({cpp.head.rpartition('::')[2]})"
    operation = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower()
    return _make("collective", operation, dtype, canonical=_canonical(cpp), short=label.strip())


def _decode_triton(text: str, match: re.Match[str]) -> KernelIdentity:
    """`triton_poi_fused_gelu_mul_0`: kind, fused ops, number. Templates are GEMM, convolution or attention."""
    kind, rest = match.group(1), re.sub(r"_?\d+$", "", match.group(2))
    fused = tuple(_FUSED_WORDS.findall(rest)) if kind else ()
    family: Family = "triton"
    if kind in ("tem", "mm"):
        inner = " ".join(fused)
        family = "attention" if "attention" in inner else "convolution" if "convolution" in inner else "gemm"
    direction: Literal["fwd", "bwd"] | None = None
    if family == "attention":
        direction = "bwd" if "backward" in rest else "fwd"
    canonical = re.sub(r"_\d+$", "", text) if kind else text
    short = f"triton {_TRITON_KINDS[kind]}: {' + '.join(fused)}" if kind else text
    units = True if family in ("gemm", "convolution", "attention") else None
    return _make(family, "+".join(fused), tensor_core=units if kind != "poi" else None, fused_ops=fused,
                 direction=direction, canonical=canonical, short=short)  # fmt: skip


def _canonical(cpp: CppName) -> str:
    head = kernel_text.plain_head(cpp.head)
    return f"{head}<{kernel_text.plain_args(cpp.args)}>" if cpp.args else head


def _make(
    family: Family, operation: str = "", dtype: str | None = None, tensor_core: bool | None = None,
    tile: str | None = None, layout: str | None = None, arch: str | None = None, fused_ops: tuple[str, ...] = (),
    direction: Literal["fwd", "bwd"] | None = None, helper: bool = False, cast: bool | None = None, canonical: str = "",
    short: str = "",
) -> KernelIdentity:  # fmt: skip
    """An identity with its texts cut to size."""
    label = short if len(short) <= SHORT_CHARS else f"{short[: SHORT_CHARS - 1]}…"
    return KernelIdentity(
        family, operation, dtype, tensor_core, tile, layout, arch, fused_ops, direction, helper, cast,
        kernel_text.shorten(canonical), label,
    )  # fmt: skip
