"""Which family does a kernel belong to, by the words of its name? An ordered table: the first row that matches wins."""

from __future__ import annotations

import re
from typing import Literal

Family = Literal[
    "gemm", "convolution", "attention", "pointwise", "reduction", "normalization", "softmax", "embedding", "sort",
    "copy", "layout", "pooling", "fft", "optimizer", "collective", "memset", "memcpy", "triton", "random", "other",
]  # fmt: skip
"""embedding: also indexing, gather and scatter; sort: also scan, top-k, unique; copy: also cat and dtype conversion;
layout: NCHW/NHWC and other transposes made by a library; pooling: also resampling; triton: generated, fused kernels."""

_HEAD_RULES: tuple[tuple[Family, str], ...] = (
    ("memcpy", r"^Memcpy|^__amd_rocclr_copy"),
    ("memset", r"^Memset|^__amd_rocclr_fill"),
    ("collective", r"nccl|rccl|mscclpp?_|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device_reduce|"
                   r"multimem_|nvshmem|deep_ep::|symm_mem_"),
    ("embedding", r"fbgemm|split_embedding|dense_embedding|embedding_(?:bag|backward|codegen)|bounds_check_indices|"
                  r"linearize_index|permute_(?:2D|indices|pooled)|recat_copy|embedding_(?:forward|grad)"),
    ("pointwise", r"rotary|rope_|_rope\b|transform_bias_rescale|act_and_mul"),
    ("embedding", r"reshape_and_cache|store_kv|kv_?cache|kv_indices|page_indices"),
    ("attention", r"fmha|flash_?(?:fwd|bwd|attn)|FlashAttn|attention|sdpa|Attention|MergeStates|mha_(?:fwd|bwd)|"
                  r"^_?attn_(?:fwd|bwd)|^_?(?:attn_)?(?:fwd|bwd)_kernel(?:_|$)|^bwd_(?:preprocess|kernel_d[kq])|"
                  r"BatchPrefill|BatchDecode|Single(?:Prefill|Decode)|compute_dot_do_o|convert_dq_to_16bits|flex_attn|"
                  r"mla_(?:fwd|decode)"),
    ("layout", r"nchwToNhwc|nhwcToNchw|NhwcToFolded|FoldedNhwc|ToNhwcKernel|ToNchwKernel|convertTensor|"
               r"batched_transpose|tensorTransform|transpose_(?:packed|NCHW|CNHW|NHWC)|transposeKernel|nchw2nhwc|nhwc2nchw"),
    ("normalization", r"(?:batch|layer|group|instance|rms|weight|l2)_?norm|LayerNorm|BatchNorm|GroupNorm|RMSNorm|"
                      r"\bbn_(?:fw|bw)|GammaBeta|RowwiseMoments|ComputeFusedParams|ComputeInternalGradients|"
                      r"ComputeBackwardFusedParams|Compute1dBackward|cuApplyLayer|^ln_(?:fwd|bwd)|welford_kernel"),
    ("softmax", r"[Ss]oft_?[Mm]ax"),
    ("convolution", r"conv(?:2d|3d|1d|olution|olve|_)|fprop|dgrad|wgrad|Wgrad|winograd|Winograd|"
                    r"fft2d_|flip_filter|pointwise_mult_and_sum_complex|im2col|col2im|vol2col|col2vol|Im2Col|"
                    r"[a-z]\d*cudnn_|^igemm_|miopenSp3|MIOpenConv|gridwise_\w*conv|naive_conv|depthwise|cask_|"
                    r"DeviceGroupedConv|implicit_gemm|compute\w*Offsets"),
    ("gemm", r"gemm|Gemm|GEMM|gemv|Gemv|^Cijk_|^nvjet_|cublasLt|cublas|splitKreduce|^bmm_|matmul|fused_moe_kernel|"
             r"marlin|dot_kernel|reduce_1Block|^mm_|^_?bmm_kernel|epilogue::impl|grouped_mm|wvSplitK"),
    ("pooling", r"pool|upsample|interpolate|grid_sample|roi_align|avg_?pool"),
    ("optimizer", r"multi_tensor_apply|lpnorm_cleanup|[Ff]used_?[Aa]dam|fused_sgd|adamw?_(?:cuda_)?kernel"),
    ("random", r"distribution_|dropout|philox|bernoulli|randperm|curand|multinomial|random"),
    ("fft", r"(?:vector|regular|multi_bluestein|real|hermitian)_fft|cufft|hipfft|fft_"),
    ("sort", r"[Ss]ort|topk|TopK|[Ss]can(?:Kernel|_|InitKernel)|scan_|Select(?:Sweep|If)|CompactInit|[Uu]nique|"
             r"ReduceByKey|searchsorted|nms|kth|median|histogram|Histogram|cumsum|routing|moe_align|gatherTopK|mode_kernel|merge_"),
    ("embedding", r"index_?(?:Select|copy|put|fill|add|select|elementwise)|indexFunc|indexing_|embedding|scatter|"
                  r"gather|compute_grad_weight|krn_partial|partial_segments|masked_s|write_indices|take_|nonzero|to_dense_repr"),
    ("copy", r"CatArray|cat_cuda|chunk_cat|split_with_sizes|copy|Copy|[Ff]lip|roll_|stack_|quantize|"
             r"_quant_kernel|quant_|CastTensor|transpose|permute"),
    ("reduction", r"reduce|Reduce|nll_loss|ClassNLL|_loss|cross_entropy|asum|finalize|norm_kernel|"
                  r"welford|cdist"),
    ("pointwise", r"elementwise|triu_tril|arange|fill|Scalar|scale|axpy|clamp|silu|gelu|relu|resolve_future|"
                  r"loop_kernel|activation|bias_add|add_kernel|mul_kernel|scal_kernel|OpTensor|Op[1-5]dTensor|linspace|swiglu|convert"),
)  # fmt: skip
_HEAD = tuple((family, re.compile(pattern)) for family, pattern in _HEAD_RULES)

# For names whose function is a shell: what the template argument says.
_INNER_RULES: tuple[tuple[Family, str], ...] = (
    ("attention", r"[Ff]mha|FlashAttn|[Ff]lash[AM]|Attention|attention|_attn_|sdpa"),
    ("convolution", r"fprop|dgrad|wgrad|[Cc]onv(?:2d|3d|olution|Fwd|Bwd)|ImplicitGemm|conv_"),
    ("normalization", r"layer_?norm|batch_?norm|rms_?norm|Layernorm|Rmsnorm|group_?norm"),
    ("softmax", r"[Ss]oft_?[Mm]ax"),
    ("gemm", r"[Gg]emm|mma_|Mma|GEMM"),
    ("sort", r"scan|sort|Scan|Sort|unique|partition|select|merge"),
    ("reduction", r"reduce|Reduce"),
    ("copy", r"transform|copy|Copy"),
)
_INNER = tuple((family, re.compile(pattern)) for family, pattern in _INNER_RULES)
_SHELL = re.compile(
    r"cutlass\w*::(?:Kernel2?|device_kernel)$|ck_tile::kentry|^kentry$|ck::kernel_|trampoline_kernel|^kernel$|::kernel$|"
    r"thrust|transform_kernel|for_each|_kernel_agent|static_kernel"
)


def family_of_head(head: str) -> Family | None:
    """The family by the function's own name."""
    return next((family for family, pattern in _HEAD if pattern.search(head)), None)


def family_of_shell(head: str, args: str) -> Family | None:
    """The family of a generic shell (`cutlass::device_kernel<...>`) by what fills it, None if it is no shell."""
    if not _SHELL.search(head):
        return None
    found = next((family for family, pattern in _INNER if pattern.search(args)), None)
    return "gemm" if found is None and "cutlass" in head else found
