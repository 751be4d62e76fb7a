"""Kernel names as recorders write them, with what must be read from them: (name, expected fields)."""

from __future__ import annotations

_NATIVE = "void at::native::"
_LAMBDA = (
    "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}"
)

MATH: tuple[tuple[str, dict[str, object]], ...] = (
    (
        "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN",
        {"family": "gemm", "dtype": "bf16", "tensor_core": True, "tile": "128x256x64", "layout": "ntn", "arch": "sm90"},
    ),
    ("nvjet_hsh_128x192_64x5_1x2_h_bz_coopB_TNT", {"family": "gemm", "dtype": "fp16", "tensor_core": True}),
    ("nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_bias_TNT", {"family": "gemm", "dtype": "fp8", "arch": "sm100"}),
    (
        "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn",
        {"family": "gemm", "dtype": "bf16", "tensor_core": True, "tile": "128x256", "layout": "nn", "arch": "sm80"},
    ),
    ("ampere_sgemm_128x64_tn", {"family": "gemm", "dtype": "fp32", "tensor_core": False, "layout": "tn"}),
    ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", {"family": "gemm", "dtype": "fp16", "tensor_core": True, "arch": "sm70"}),
    ("volta_h884gemm_256x64_ldg8_tn", {"family": "gemm", "dtype": "fp16", "tensor_core": True}),
    ("maxwell_hgemm_256x128_tn", {"family": "gemm", "dtype": "fp16", "tensor_core": False, "arch": "sm50"}),
    ("volta_dgemm_64x64_nn", {"family": "gemm", "dtype": "fp64", "tensor_core": False}),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4>(cutlass_80_tensorop_s1688gemm::Params)",
        {"family": "gemm", "dtype": "tf32", "tensor_core": True, "tile": "128x64", "layout": "tn", "arch": "sm80"},
    ),
    (
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_32x1_tn_align8>(Params)",
        {"family": "gemm", "dtype": "bf16", "tensor_core": True, "tile": "32x32", "layout": "tn"},
    ),
    (
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_tn_align1>(cutlass_80_simt_sgemm_64x64_8x5_tn_align1::Params)",
        {"family": "gemm", "dtype": "fp32", "tensor_core": False, "tile": "64x64"},
    ),
    (
        "cutlass3x_sm100_tensorop_s128x64x8tf32gemm_f32_f32_f32_f32_f32_128x64x32_0_tnn_align4_2sm",
        {"family": "gemm", "dtype": "tf32", "tensor_core": True, "layout": "tnn", "arch": "sm100"},
    ),
    ("cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x32x16_1x1x1_3_tnn_align1_bias_f32_relu",
     {"family": "gemm", "dtype": "fp32", "tensor_core": False}),
    (
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<float_e4m3_t>>>(Params)",
        {"family": "attention", "direction": "fwd", "dtype": "fp8"},
    ),
    (
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, cutlass::bfloat16_t, "
        "cutlass::arch::OpClassTensorOp>>(Params)",
        {"family": "gemm", "dtype": "bf16", "tensor_core": True},
    ),
    (
        "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_kernel__5x_cublas",
        {"family": "gemm", "dtype": "tf32", "tensor_core": True, "tile": "128x128x32", "layout": "nn", "arch": "sm90"},
    ),
    (
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_execute_kernel__5x_cublas",
        {"family": "gemm", "dtype": "fp32", "tensor_core": False},
    ),
    (
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, __nv_bfloat16, float, false>(P)",
        {"family": "gemm", "dtype": "bf16", "tensor_core": False},
    ),
    ("void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, cublasGemvTensorStridedBatched<float const>>(P)",
     {"family": "gemm", "dtype": "fp32", "tensor_core": False}),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float>(P)", {"family": "gemm", "helper": True}),
    (
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1_ISA942_IU1_K1_WG32_8_1",
        {"family": "gemm", "dtype": "bf16", "tensor_core": True, "tile": "256x192x64", "layout": "tn", "arch": "gfx942"},
    ),
    ("Cijk_Ailk_Bljk_HHS_BH_MT64x64x16_SE_ISA90a_K1", {"family": "gemm", "dtype": "fp16", "tensor_core": False, "layout": "nn"}),
    (
        "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_dynBatch_sm100f",
        {"family": "gemm", "dtype": "fp8", "tensor_core": True, "tile": "128x16x256", "layout": "tn"},
    ),
    ("triton_tem_fused_addmm_relu_3", {"family": "gemm", "fused_ops": ("addmm", "relu")}),
    ("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize256x64x32_execute_kernel__5x_cudnn",
     {"family": "convolution", "dtype": "bf16", "tensor_core": True, "layout": "nhwc", "tile": "256x64x32"}),
    ("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize256x64x8_stage3_ffma_kernel_cudnn",
     {"family": "convolution", "dtype": "fp32", "tensor_core": False, "layout": "nchw"}),
    ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", {"family": "convolution", "dtype": "fp32", "tensor_core": False}),
    ("turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
     {"family": "convolution", "dtype": "fp16", "tensor_core": True, "layout": "nhwc", "arch": "sm75"}),
    ("void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_128x64_32x3_nhwc_align4>(Params)",
     {"family": "convolution", "dtype": "tf32", "tensor_core": True}),
    ("void fft2d_r2c_32x32<float, false, 5u, true>(float2*, float const*, int)",
     {"family": "convolution", "dtype": "fp32", "tensor_core": False, "helper": True}),
    ("void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int)",
     {"family": "convolution", "dtype": "fp32", "tensor_core": False}),
    ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)", {"family": "convolution", "dtype": "fp32"}),
    ("igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_wr2x2",
     {"family": "convolution", "dtype": "bf16", "tensor_core": True, "tile": "128x128x32", "layout": "nhwc"}),
    ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
     {"family": "attention", "direction": "fwd", "dtype": "bf16", "tensor_core": True, "tile": "64x64", "arch": "sm80"}),
    ("fmha_cutlassB_f16_aligned_64x64_k64_sm80(P)", {"family": "attention", "direction": "bwd", "dtype": "fp16"}),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x64_1x4x1_cga1x1x1_kernel0_0",
     {"family": "attention", "direction": "bwd", "dtype": None, "tensor_core": True, "arch": "sm90"}),
    ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 64, 4, false, false, cutlass::half_t>>(P)",
     {"family": "attention", "direction": "fwd", "dtype": "fp16", "tile": "128x64"}),
    ("_ZN7ck_tile6kentryILi1ENS_22FmhaBwdOGradDotOKernelINS_4foo", {"family": "attention", "direction": "bwd"}),
    ("attn_fwd", {"family": "attention", "direction": "fwd"}),
    ("triton_tem_fused_flex_attention_backward_1", {"family": "attention", "direction": "bwd"}),
)  # fmt: skip

OTHERS: tuple[tuple[str, dict[str, object]], ...] = (
    (
        f"{_NATIVE}vectorized_elementwise_kernel<8, at::native::CUDAFunctorOnSelf_add<c10::BFloat16>, std::array<char*, 2ul> >(int)",
        {"family": "pointwise", "operation": "add", "dtype": "bf16"},
    ),
    (
        f"{_NATIVE}vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl{_LAMBDA}, std::array<char*, 2ul> >(int)",
        {"family": "pointwise", "operation": "gelu", "dtype": "fp32"},
    ),
    (
        f"{_NATIVE}vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, float, float, "
        "at::native::binary_internal::MulFunctor<float> >, at::detail::Array<char*, 2> >(int)",
        {"family": "pointwise", "operation": "mul", "dtype": "fp32"},
    ),
    (
        f"{_NATIVE}unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda{_LAMBDA}, std::array<char*, 2ul>, 4, "
        "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)",
        {"family": "copy", "operation": "copy", "dtype": "fp32", "cast": True},
    ),
    (
        f"{_NATIVE}elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda{_LAMBDA}>>(int)",
        {"family": "copy", "cast": False},
    ),
    (
        f"{_NATIVE}vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::"
        "{lambda(float)#1}, std::array<char*, 2ul> >(int)",
        {"family": "copy", "cast": True},
    ),
    (
        f"{_NATIVE}reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, 4> >(P)",
        {"family": "reduction", "operation": "mean", "dtype": "fp32"},
    ),
    (
        f"{_NATIVE}(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>, "
        "at::native::(anonymous namespace)::UnaryOpFunctor<float, 2, 1, 1>, at::native::Sqrt<float> >(P)",
        {"family": "optimizer", "operation": "foreach_sqrt", "dtype": "fp32"},
    ),
    (
        f"{_NATIVE}(anonymous namespace)::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, "
        "at::native::(anonymous namespace)::FusedAdamMathFunctor<c10::BFloat16, 4> >(P)",
        {"family": "optimizer", "operation": "fused_adam", "dtype": "bf16"},
    ),
    (f"{_NATIVE}(anonymous namespace)::cunn_SoftMaxForward<4, float, float>(float*)", {"family": "softmax", "dtype": "fp32"}),
    (f"{_NATIVE}(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)", {"family": "normalization"}),
    (f"{_NATIVE}(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 3, 64, 64>(float*)", {"family": "copy"}),
    (f"{_NATIVE}(anonymous namespace)::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>(P)", {"family": "embedding"}),
    (
        f"{_NATIVE}index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<at::native::index_kernel_impl<OpaqueType<8>>>>(P)",
        {"family": "embedding", "dtype": None},
    ),
    (f"{_NATIVE}(anonymous namespace)::max_pool_forward_nchw<float, float>(int)", {"family": "pooling"}),
    ("void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800>(P)", {"family": "sort"}),
    ("void at_cuda_detail::cub::DeviceReduceSingleTileKernel<int>(P)", {"family": "reduction"}),
    ("void cudnn::ops::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float>(P)", {"family": "layout", "dtype": "bf16"}),
    ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(P)", {"family": "normalization"}),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
     {"family": "collective", "operation": "all_reduce", "dtype": "bf16"}),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", {"family": "collective", "operation": "send_recv"}),
    ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(P)", {"family": "collective"}),
    ("Memcpy HtoD (Pageable -> Device)", {"family": "memcpy", "short": "Memcpy HtoD (Pageable -> Device)"}),
    ("Memset (Device)", {"family": "memset"}),
    ("triton_poi_fused__unsafe_view_gelu_mul_0", {"family": "triton", "fused_ops": ("_unsafe_view", "gelu", "mul")}),
    ("triton_per_fused_add_native_layer_norm_view_6", {"fused_ops": ("add", "native_layer_norm", "view"), "dtype": None}),
    ("triton_poi_fused_add_copy__1", {"fused_ops": ("add", "copy_")}),
    ("triton__0d1d2de", {"family": "triton", "fused_ops": ()}),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(P)", {"family": "pointwise", "dtype": "bf16"}),
    ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256E", {"family": "normalization", "dtype": "bf16"}),
    ("my_own_thing", {"family": "other", "dtype": None, "tensor_core": None}),
)  # fmt: skip
