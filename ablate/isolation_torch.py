"""The settings of torch and numpy that `isolation` puts back after a run."""

import pickle
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import overrides
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers
from torch.utils import _python_dispatch as dispatch

from ablate.isolation import Present, Setting
from ablate.isolation_python import attribute, nothing_helps

C: Any = torch._C
functions: Any = overrides


def flag(name: str, read: Callable[[], Any], write: Callable[..., Any]) -> Setting:
    """Return a setting of one value, or of several that are written together."""
    return Setting(name, read, lambda value: write(*value) if isinstance(value, tuple) else write(value))


# modes and what tensors are made as -----------------------------------------------------------------------------------


def _function_modes() -> tuple[Any, ...]:
    """Return the stack of modes, and what the default device hangs on."""
    utils = sys.modules.get("torch.utils._device")
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return tuple(functions._get_current_function_mode_stack()), context, getattr(utils, "CURRENT_DEVICE", None)


def _write_function_modes(before: tuple[Any, ...]) -> None:
    stack, context, device = before
    while functions._get_current_function_mode_stack():
        functions._pop_mode()
    for mode in stack:
        functions._push_mode(mode)
    torch._GLOBAL_DEVICE_CONTEXT.device_context = context
    if utils := sys.modules.get("torch.utils._device"):
        utils.CURRENT_DEVICE = device  # type: ignore[attr-defined]


def _write_dispatch_modes(before: list[Any]) -> None:
    while dispatch._get_current_dispatch_mode_stack():
        dispatch._pop_mode()
    for mode in before:
        dispatch._push_mode(mode)


def _tensor_type() -> tuple[str, torch.dtype]:
    return str(C._get_default_device()), torch.get_default_dtype()


def _write_tensor_type(before: tuple[str, torch.dtype]) -> None:
    device, dtype = before
    if C._get_default_device() != device:
        kind = torch.cuda.FloatTensor if device.startswith("cuda") else torch.FloatTensor  # type: ignore[attr-defined]
        torch.set_default_tensor_type(kind)
    torch.set_default_dtype(dtype)


def _saved_tensor_hooks() -> list[Any]:
    """Return the hooks on tensors saved for the backward pass, the newest first."""
    found = []
    while (top := C._autograd._top_saved_tensors_default_hooks(True)) is not None:
        found.append(top)
        C._autograd._pop_saved_tensors_default_hooks()
    for hooks in reversed(found):
        C._autograd._push_saved_tensors_default_hooks(*hooks)
    return found


def _write_saved_tensor_hooks(before: list[Any]) -> None:
    for _ in _saved_tensor_hooks():
        C._autograd._pop_saved_tensors_default_hooks()
    for hooks in reversed(before):
        C._autograd._push_saved_tensors_default_hooks(*hooks)


def _refuse_hooks(before: str | None) -> None:
    if before is None:
        C._autograd._saved_tensors_hooks_enable()
    else:
        C._autograd._saved_tensors_hooks_disable(before)


MODES = (
    Setting("torch function modes and default device", _function_modes, _write_function_modes),
    Setting("torch dispatch modes", dispatch._get_current_dispatch_mode_stack, _write_dispatch_modes),
    Setting("default dtype", _tensor_type, _write_tensor_type),
    flag("torch functions", C._get_torch_function_state, C._set_torch_function_state),
    flag("inference mode", torch.is_inference_mode_enabled, nothing_helps),
    flag("grad mode", torch.is_grad_enabled, C._set_grad_enabled),
    flag("multithreaded backward pass", C._is_multithreading_enabled, C._set_multithreading_enabled),
    flag("view replay", C._is_view_replay_enabled, C._set_view_replay_enabled),
    Setting(
        "refusal of hooks on saved tensors", C._autograd._saved_tensors_hooks_get_disabled_error_message, _refuse_hooks
    ),
    Setting("hooks on saved tensors", _saved_tensor_hooks, _write_saved_tensor_hooks),
    flag(
        "anomaly mode",
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        torch.set_anomaly_enabled,
    ),
    flag("autograd profiler", C._autograd._profiler_enabled, nothing_helps),
)

# autocast -------------------------------------------------------------------------------------------------------------

KINDS = ("cpu", "cuda")


def _autocast() -> tuple[Any, ...]:
    kinds = [(torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in KINDS]
    depth = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    return kinds, torch.is_autocast_cache_enabled(), depth


def _write_autocast(before: tuple[Any, ...]) -> None:
    kinds, cache, depth = before
    for kind, (enabled, dtype) in zip(KINDS, kinds, strict=True):
        torch.set_autocast_enabled(kind, enabled)
        torch.set_autocast_dtype(kind, dtype)
    torch.set_autocast_cache_enabled(cache)
    while torch.autocast_decrement_nesting() > depth:
        pass
    while torch.autocast_increment_nesting() <= depth:
        pass
    torch.autocast_decrement_nesting()
    torch.clear_autocast_cache()


# arithmetic -----------------------------------------------------------------------------------------------------------

PRECISIONS = (("generic", "all"), *((of, op) for of in ("cuda", "mkldnn") for op in ("all", "matmul", "conv", "rnn")))


def _precision() -> tuple[Any, ...]:
    return torch.get_float32_matmul_precision(), C._get_cudnn_allow_tf32(), _precisions()


def _precisions() -> list[str]:
    return [C._get_fp32_precision_getter(*which) for which in PRECISIONS]


def _write_precision(before: tuple[Any, ...]) -> None:
    """Write torch's older settings first: each sets some of the newer ones, which say all."""
    matmul, cudnn, each = before
    for which, value in zip(PRECISIONS, each, strict=True):
        C._set_fp32_precision_setter(*which, value)
    torch.set_float32_matmul_precision(matmul)
    if C._get_cudnn_allow_tf32() != cudnn:
        C._set_cudnn_allow_tf32(cudnn)
    for index, which in enumerate(PRECISIONS):
        if _precisions()[index] != each[index]:
            C._set_fp32_precision_setter(*which, each[index])


def _flushes_denormals() -> bool:
    smallest = np.nextafter(0.0, 1.0)
    return bool(torch.full((1,), float(smallest), dtype=torch.float64, device="cpu").mul(1.0).eq(0.0).item())


def _deterministic() -> tuple[bool, bool]:
    return C._get_deterministic_algorithms(), C._get_deterministic_algorithms_warn_only()


def _backend(name: str, key: str) -> Setting:
    return flag(name, getattr(C, f"_get_{key}"), getattr(C, f"_set_{key}"))


ARITHMETIC = (
    Setting("autocast", _autocast, _write_autocast),
    Setting("float32 precision", _precision, _write_precision),
    Setting("denormal numbers", _flushes_denormals, torch.set_flush_denormal),
    Setting(
        "deterministic algorithms",
        _deterministic,
        lambda value: C._set_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    _backend("filling of new memory", "deterministic_fill_uninitialized_memory"),
    _backend("cudnn.enabled", "cudnn_enabled"),
    _backend("cudnn.benchmark", "cudnn_benchmark"),
    _backend("cudnn.deterministic", "cudnn_deterministic"),
    _backend("mkldnn.enabled", "mkldnn_enabled"),
    _backend("mkldnn.deterministic", "mkldnn_deterministic"),
    _backend("nnpack", "nnpack_enabled"),
    _backend("float16 reductions of cuBLAS", "cublas_allow_fp16_reduced_precision_reduction"),
    _backend("bfloat16 reductions of cuBLAS", "cublas_allow_bf16_reduced_precision_reduction"),
    _backend("float16 accumulation of cuBLAS", "cublas_allow_fp16_accumulation"),
    _backend("float16 reductions on the CPU", "cpu_allow_fp16_reduced_precision_reduction"),
    _backend("linear algebra library", "linalg_preferred_backend"),
    _backend("BLAS library", "blas_preferred_backend"),
    _backend("reductions of attention in half precision", "math_sdp_allow_fp16_bf16_reduction"),
    *(
        flag(f"{kind} attention", getattr(C, f"_get_{kind}_sdp_enabled"), getattr(C, f"_set_sdp_use_{kind}"))
        for kind in ("flash", "mem_efficient", "math", "cudnn", "overrideable")
    ),
    Setting("order of attention backends", C._get_sdp_priority_order, C._set_sdp_priority_order),
    flag("threads", torch.get_num_threads, torch.set_num_threads)._replace(is_noted=False),
    flag("interop threads", torch.get_num_interop_threads, torch.set_num_interop_threads),
)

# hooks on every module and optimiser ----------------------------------------------------------------------------------


def _hooks() -> list[dict[Any, Any]]:
    owners: tuple[ModuleType, ...] = (modules, optimizers)
    every = [value for owner in owners for name, value in vars(owner).items() if name.startswith("_global_")]
    return [value for value in every if isinstance(value, dict)]


def _write_hooks(before: list[dict[Any, Any]]) -> None:
    for hooks, value in zip(_hooks(), before, strict=True):
        hooks.clear()
        hooks.update(value)


# random numbers -------------------------------------------------------------------------------------------------------


def _numpy_generator() -> tuple[Any, bytes]:
    generator: Any = np.random.get_bit_generator()  # type: ignore[attr-defined,unused-ignore]
    return generator, pickle.dumps(generator.state)


def _write_numpy_generator(before: tuple[Any, bytes]) -> None:
    generator, state = before
    np.random.set_bit_generator(generator)  # type: ignore[attr-defined,unused-ignore]
    generator.state = pickle.loads(state)


def _torch_generators() -> Present:
    """Return the state of each generator: of the CPU, then of the GPUs once torch uses one."""
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    return Present(dict(enumerate(state.numpy().tobytes() for state in (torch.default_generator.get_state(), *gpus))))


def _write_torch_generators(before: Present) -> None:
    cpu, *gpus = (torch.frombuffer(bytearray(state), dtype=torch.uint8) for state in before.entries.values())
    torch.default_generator.set_state(cpu)
    for index, state in enumerate(gpus):
        torch.cuda.set_rng_state(state, index)


def _write_printing(before: dict[str, Any]) -> None:
    vars(torch._tensor_str.PRINT_OPTS).update(before)


def _gpu() -> Present:
    """Return the current GPU and stream, once torch uses one."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return Present({})
    return Present({"device": torch.cuda.current_device(), "stream": torch.cuda.current_stream()})


def _write_gpu(before: Present) -> None:
    torch.cuda.set_device(before.entries["device"])
    torch.cuda.set_stream(before.entries["stream"])


OTHER = (
    Setting("hooks on all modules or optimisers", lambda: [dict(hooks) for hooks in _hooks()], _write_hooks),
    attribute(modules, "_global_is_full_backward_hook"),
    flag("torch.set_warn_always", torch.is_warn_always_enabled, torch.set_warn_always),
    Setting("torch's print options", lambda: dict(vars(torch._tensor_str.PRINT_OPTS)), _write_printing),
    Setting("numpy's error state", np.geterr, lambda value: np.seterr(**value)),
    Setting("numpy's error call", np.geterrcall, np.seterrcall),
    Setting("numpy's print options", np.get_printoptions, lambda value: np.set_printoptions(**value)),
    Setting("numpy's buffer size", np.getbufsize, np.setbufsize),
    Setting("numpy's generator", _numpy_generator, _write_numpy_generator, is_noted=False),
    Setting("torch's generators", _torch_generators, _write_torch_generators, is_noted=False),
    Setting("current GPU", _gpu, _write_gpu, is_noted=False),
)

SETTINGS: Sequence[Setting] = (*MODES, *ARITHMETIC, *OTHER)
