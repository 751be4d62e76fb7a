"""How is a few lines of CUDA source turned into a callable kernel, without a CUDA toolkit installed?

torch.cuda._compile_kernel would do, but it asks for CUDA_HOME; NVRTC itself comes with torch.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from gapless.runtime.timing.backend import UnavailableError

__all__ = ["Kernel", "compile_kernels"]

Kernel = Callable[..., None]
"""Called as kernel(grid=, block=, args=[...]) with pinned or CUDA tensors and 32-bit integers."""


def compile_kernels(source: str, names: list[str]) -> list[Kernel]:
    """Compile CUDA C++ (names declared extern "C") for this device and load it; UnavailableError says why not."""
    if torch.version.cuda is None:
        raise UnavailableError("kernels are compiled at run time for CUDA only")
    major, minor = torch.cuda.get_device_capability()
    binary = _compile(_library(), source.encode(), f"sm_{major}{minor}")
    try:
        from torch.cuda._utils import _cuda_load_module
    except ImportError as error:
        raise UnavailableError(f"torch {torch.__version__} has no loader for compiled kernels ({error})") from error
    try:
        loaded = _cuda_load_module(binary, names)
    except RuntimeError as error:
        raise UnavailableError(f"the compiled kernel does not load: {error}") from error
    assert isinstance(loaded, dict)
    return [loaded[name] for name in names]


def _library() -> ctypes.CDLL:
    major = str(torch.version.cuda).split(".")[0]
    if sys.platform == "win32":
        names = [f"nvrtc64_{major}0_0.dll"]
    else:
        names = [f"libnvrtc.so.{major}", "libnvrtc.so"]
        beside = Path(torch.__file__).parent.parent / "nvidia"
        names += sorted(str(p) for p in beside.glob(f"*/lib/libnvrtc.so.{major}*"))
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise UnavailableError(f"NVRTC of CUDA {major} was not found")


def _compile(nvrtc: ctypes.CDLL, source: bytes, architecture: str) -> bytes:
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"gapless.cu", 0, None, None) != 0:
        raise UnavailableError("NVRTC could not create a program")
    try:
        option = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
        if nvrtc.nvrtcCompileProgram(program, 1, option) != 0:
            raise UnavailableError(f"NVRTC refused the blocker kernel for {architecture}: {_log(nvrtc, program)}")
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        binary = ctypes.create_string_buffer(size.value)
        if size.value == 0 or nvrtc.nvrtcGetCUBIN(program, binary) != 0:
            raise UnavailableError(f"NVRTC gave no code for {architecture}")
        return binary.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _log(nvrtc: ctypes.CDLL, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(max(1, size.value))
    nvrtc.nvrtcGetProgramLog(program, text)
    return " ".join(text.value.decode(errors="replace").split())[:300]
