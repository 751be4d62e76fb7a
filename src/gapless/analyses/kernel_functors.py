"""Which operation does a generic PyTorch kernel apply? `reduce_kernel<.. MeanOps ..>` -> mean."""

from __future__ import annotations

import re

from gapless.analyses.kernel_text import CppName, dtype_in, functor_text

ELEMENTWISE = frozenset(
    (
        "vectorized_elementwise_kernel", "unrolled_elementwise_kernel", "elementwise_kernel",
        "legacy_elementwise_kernel",
        "elementwise_kernel_with_index", "elementwise_kernel_manual_unroll",
        "unrolled_elementwise_kernel_for_multi_outputs",
        "vectorized_templated_elementwise_kernel", "loop_kernel", "index_elementwise_kernel",
    )
)  # fmt: skip
"""Wrappers whose functor is their first template argument that is no number."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_WRAPPERS = re.compile(
    r"^(?:[AB]?UnaryFunctor|BinaryFunctor|gpu_kernel_impl\w*|gpu_index_kernel|func_wrapper_t|ReduceOp|"
    r"multi_tensor_apply_kernel|elementwise_kernel\w*)$"
)
_OPERATION = re.compile(r"functor|kernel|ops$|_out$|launch_|copy_device|(?:transform|invert)$", re.IGNORECASE)
_PREFIX = re.compile(r"^(?:CUDAFunctor(?:OnSelf|OnOther)?_|CUDAFunctor|launch_|at_)")
_SUFFIX = re.compile(
    r"(?:_?(?:CUDAKernelImpl|KernelImpl|CUDAKernel|kernel_cuda_impl|cuda_kernel_impl|kernel_cuda|cuda_kernel|kernel_impl|"
    r"cuda_out|kernel|functor|Functor|Ops))$"
)
_VARIANT = re.compile(r"_(?:scalar|tensor)$")
_SIGNATURE = re.compile(r"\([^(){}]*\)(?=::\{|\s*const)")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STD_OP = re.compile(
    r"std::(plus|minus|multiplies|divides)\b|\b(Lerp)Functor|native::(\w+)<[\w:]+(?:, [\w:]+)?>\s*(?:,|$)"
)
_STD_NAMES = {"plus": "add", "minus": "sub", "multiplies": "mul", "divides": "div"}


def tidy(identifier: str) -> str:
    """The operation an implementation function or functor is named after, in snake case: GeluCUDAKernelImpl -> gelu."""
    text = _PREFIX.sub("", identifier)
    while True:
        cut = _SUFFIX.sub("", text)
        if cut == text or not cut:
            break
        text = cut
    return _VARIANT.sub("", _CAMEL.sub("_", text).lower().strip("_"))


def operation(name: CppName) -> str:
    """The operation inside an elementwise or reduction wrapper; '' if nothing in it looks like one."""
    text = functor_text(name.args)
    for match in _IDENTIFIER.finditer(text):
        word = match.group()
        if not _WRAPPERS.match(word) and _OPERATION.search(word):
            found = tidy(word)
            return {"direct_copy": "copy", "copy_device_to_device": "copy"}.get(found, found)
    return ""


def functor_dtype(name: CppName) -> str | None:
    """The element type a wrapper's functor works on; types in the signature round a lambda do not count."""
    text = _SIGNATURE.sub("", functor_text(name.args))
    found = dtype_in(text)
    # A condition comes before the values it chooses between.
    return dtype_in(text.replace("(bool, ", "(")) if found == "bool" else found


def random_operation(name: CppName) -> str:
    """The distribution a random-number kernel draws from, '' if it does not say."""
    match = re.search(r"(\w+?)_(?:and_transform|kernel\b)", name.args)
    return f"random {match.group(1)}" if match else ""


def foreach_operation(name: CppName) -> str:
    """The operation of a `multi_tensor_apply_kernel`: fused_adam, foreach_add, foreach_lp_norm, ..."""
    for match in _IDENTIFIER.finditer(name.args):
        word = match.group()
        if not word.endswith("Functor"):
            continue
        if not re.match(r"(?:Binary|Unary|Ternary|Pointwise|ZeroIs)", word):
            found = tidy(word).removesuffix("_math")
            return found if re.search(r"adam|sgd|adagrad|lamb|novograd", found) else f"foreach_{found}"
        inner = _STD_OP.search(name.args, match.end())
        if inner is None:
            return f"foreach_{tidy(word)}"
        found = next(group for group in inner.groups() if group)
        return f"foreach_{_STD_NAMES.get(found, tidy(found))}"
    return "foreach"


def casts(name: CppName) -> bool | None:
    """Whether an elementwise kernel converts between dtypes; None where the name does not tell."""
    if "LoadWithCast" in name.args or "StoreWithCast" in name.args or "LoadWithCast" in name.params:
        return True
    if re.search(r"b?float(?:16|8)(?:to\w+)?_copy|float8_\w+_copy", name.args):
        return True
    if "gpu_kernel_impl<" in name.args:
        # The plain wrapper served both cases before torch 1.13 and only the converting one since.
        return None
    return False
