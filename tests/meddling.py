"""What a run's code may set for its whole process: one way to change each setting that `ablate.isolation` knows.

`Meddling` is a schedule that does so (options in tests/faulty_conf), for tests of what becomes of the next run.
"""

import contextlib
import decimal
import gc
import io
import locale
import logging
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.modules import module as modules
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

C: Any = torch._C


def shifted(module: Any, _args: Any, output: Any) -> Any:
    """What a hook on all modules makes of an output: another number for everything."""
    return output + 1 if torch.is_tensor(output) else output


class Zeros(TorchFunctionMode):
    """Has every dropout and linear map give zeros."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return torch.Tensor.mul_(result, 0) if func is F.linear else result


class Dispatch(TorchDispatchMode):
    """Changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Finder:
    """Finds no module."""

    @staticmethod
    def find_spec(*_: Any) -> None:
        """Find nothing."""


def ignore(*_: Any, **__: Any) -> None:
    """Do nothing."""


def no_folder(_: str) -> None:
    """Be no importer."""
    raise ImportError


def put(owner: Any, name: str, value: Any) -> Callable[[], None]:
    """Return what sets an attribute."""
    return lambda: setattr(owner, name, value)


def environment() -> None:
    os.environ["ABLATE_MEDDLED"] = "1"
    os.environ["TZ"] = "Asia/Tokyo"
    os.environ.pop("PATH")
    time.tzset()


def handlers() -> None:
    for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, ignore)


def fewer_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft - 1, 500), hard))


def replace_functions() -> None:
    F.scaled_dot_product_attention = lambda query, key, value, **_: value  # type: ignore[assignment]
    torch.nn.Linear.forward = lambda self, x: F.linear(x, 2 * self.weight, self.bias)  # type: ignore[method-assign]
    random.random = lambda: 0.5
    import ablate.training.trainer

    ablate.training.trainer.token_losses = lambda logits, targets: logits.flatten()  # type: ignore[assignment]


def log_otherwise() -> None:
    logging.getLogger("ablate").setLevel(logging.CRITICAL)
    logging.getLogger("ablate").propagate = False
    logging.getLogger().addHandler(logging.NullHandler())


def count_twice() -> None:
    torch.autocast_increment_nesting()
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)


def where_it_can(change: Callable[[Any], Any], value: Any) -> Callable[[], None]:
    """Return what changes a setting, on machines where it can be changed."""

    def way() -> None:
        with contextlib.suppress(RuntimeError):
            change(value)

    return way


def hook_everything() -> None:
    modules.register_module_forward_hook(shifted)
    modules.register_module_forward_pre_hook(ignore)
    modules.register_module_backward_hook(ignore)
    modules.register_module_parameter_registration_hook(ignore)
    register_optimizer_step_pre_hook(ignore)


def default_device() -> None:
    torch.set_default_device("meta")
    Zeros().__enter__()


class Records(logging.LogRecord):
    """Log records of another class."""


class Loggers(logging.Logger):
    """Loggers of another class."""


WAYS: dict[str, Callable[[], Any]] = {
    "replaced functions": replace_functions,
    "torch function modes and default device": default_device,
    "torch dispatch modes": lambda: Dispatch().__enter__(),
    "default dtype": lambda: torch.set_default_dtype(torch.float64),
    "torch functions": lambda: C._set_torch_function_state(C._TorchFunctionState.ALL_DISABLED),
    "grad mode": lambda: torch.set_grad_enabled(False),
    "multithreaded backward pass": lambda: C._set_multithreading_enabled(False),
    "view replay": lambda: C._set_view_replay_enabled(not C._is_view_replay_enabled()),
    "hooks on saved tensors": lambda: torch.autograd.graph.saved_tensors_hooks(torch.zeros_like, ignore).__enter__(),
    "refusal of hooks on saved tensors": lambda: C._autograd._saved_tensors_hooks_disable("not here"),
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True),
    "autocast": count_twice,
    "float32 precision": lambda: torch.set_float32_matmul_precision("medium"),
    "denormal numbers": lambda: torch.set_flush_denormal(True),
    "deterministic algorithms": lambda: C._set_deterministic_algorithms(True, warn_only=True),
    "filling of new memory": put(torch.utils.deterministic, "fill_uninitialized_memory", False),
    "cudnn.enabled": put(torch.backends.cudnn, "enabled", False),
    "cudnn.benchmark": put(torch.backends.cudnn, "benchmark", True),
    "cudnn.deterministic": put(torch.backends.cudnn, "deterministic", True),
    "mkldnn.enabled": lambda: C._set_mkldnn_enabled(False),
    "mkldnn.deterministic": lambda: C._set_mkldnn_deterministic(True),
    "nnpack": lambda: C._set_nnpack_enabled(False),
    "float16 reductions of cuBLAS": put(
        torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", (False, False)
    ),
    "bfloat16 reductions of cuBLAS": put(torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", False),
    "float16 accumulation of cuBLAS": put(torch.backends.cuda.matmul, "allow_fp16_accumulation", True),
    "float16 reductions on the CPU": where_it_can(
        C._set_cpu_allow_fp16_reduced_precision_reduction, not C._get_cpu_allow_fp16_reduced_precision_reduction()
    ),
    "linear algebra library": where_it_can(C._set_linalg_preferred_backend, C._LinalgBackend.Cusolver),
    "BLAS library": where_it_can(C._set_blas_preferred_backend, C._BlasBackend.Cublaslt),
    "reductions of attention in half precision": lambda: C._set_math_sdp_allow_fp16_bf16_reduction(True),
    "flash attention": lambda: torch.backends.cuda.enable_flash_sdp(False),
    "mem_efficient attention": lambda: torch.backends.cuda.enable_mem_efficient_sdp(False),
    "math attention": lambda: torch.backends.cuda.enable_math_sdp(False),
    "cudnn attention": lambda: torch.backends.cuda.enable_cudnn_sdp(False),
    "overrideable attention": lambda: C._set_sdp_use_overrideable(False),
    "order of attention backends": lambda: C._set_sdp_priority_order([0, 1, 2, 3, 4]),
    "threads": lambda: torch.set_num_threads(3),
    "hooks on all modules or optimisers": hook_everything,
    "torch.nn.modules.module._global_is_full_backward_hook": put(modules, "_global_is_full_backward_hook", True),
    "torch.set_warn_always": lambda: torch.set_warn_always(True),
    "torch's print options": lambda: torch.set_printoptions(precision=2, sci_mode=True),
    "numpy's error state": lambda: np.seterr(all="raise"),
    "numpy's error call": lambda: np.seterrcall(ignore),
    "numpy's print options": lambda: np.set_printoptions(precision=2),
    "numpy's buffer size": lambda: np.setbufsize(16),
    "numpy's generator": lambda: np.random.set_bit_generator(np.random.PCG64(1)),
    "torch's generators": lambda: torch.manual_seed(4711),
    "environment": environment,
    "working folder": lambda: os.chdir("/"),
    "umask": lambda: os.umask(0o077),
    "signal handlers": handlers,
    "blocked signals": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]),
    "timers": lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 1e6),
    "resource limits": fewer_files,
    "CPU affinity": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
    "sys.path": lambda: sys.path.insert(0, "/nowhere"),
    "sys.argv": put(sys, "argv", ["meddled"]),
    "sys.meta_path": lambda: sys.meta_path.append(Finder()),
    "sys.path_hooks": lambda: sys.path_hooks.append(no_folder),
    "sys.stdin": lambda: setattr(sys, "stdin", io.StringIO()),
    "sys.stdout": lambda: setattr(sys, "stdout", io.StringIO()),
    "sys.stderr": lambda: setattr(sys, "stderr", None),
    "sys.excepthook": put(sys, "excepthook", ignore),
    "sys.displayhook": put(sys, "displayhook", ignore),
    "sys.unraisablehook": put(sys, "unraisablehook", ignore),
    "sys.dont_write_bytecode": lambda: setattr(sys, "dont_write_bytecode", not sys.dont_write_bytecode),
    "threading.excepthook": put(threading, "excepthook", ignore),
    "sys.modules": lambda: sys.modules.update(random=tempfile),
    "trace function": lambda: sys.settrace(ignore),
    "profile function": lambda: sys.setprofile(ignore),
    "trace function of threads": lambda: threading.settrace(ignore),
    "profile function of threads": lambda: threading.setprofile(ignore),
    "recursion limit": lambda: sys.setrecursionlimit(4711),
    "switch interval": lambda: sys.setswitchinterval(0.25),
    "longest integer text": lambda: sys.set_int_max_str_digits(700),
    "garbage collection": gc.disable,
    "random's generator": lambda: random.seed(4711),
    "decimal context": lambda: setattr(decimal.getcontext(), "prec", 3),
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C" if locale.setlocale(locale.LC_ALL) != "C" else "C.UTF-8"),
    "socket timeout": lambda: socket.setdefaulttimeout(3.0),
    "tempfile.tempdir": put(tempfile, "tempdir", "/nowhere"),
    "warnings filters": lambda: warnings.simplefilter("ignore"),
    "warnings.showwarning": put(warnings, "showwarning", ignore),
    "warnings._showwarnmsg_impl": put(warnings, "_showwarnmsg_impl", ignore),
    "warnings.formatwarning": put(warnings, "formatwarning", ignore),
    "loggers": log_otherwise,
    "log handlers": lambda: [handler.setLevel(99) for handler in logging.getLogger().handlers],
    "logging.disable": lambda: logging.disable(logging.CRITICAL),
    "logging.raiseExceptions": lambda: setattr(logging, "raiseExceptions", not logging.raiseExceptions),
    "logging.lastResort": put(logging, "lastResort", None),
    "logging._warnings_showwarning": put(logging, "_warnings_showwarning", ignore),
    "class of loggers": lambda: logging.setLoggerClass(Loggers),
    "factory of log records": lambda: logging.setLogRecordFactory(Records),
}
"""By the name of the setting: something that changes it and does not put it back."""

ALL = [name for name in WAYS if name != "refusal of hooks on saved tensors"]
"""Those that go together: hooks are not refused where there are some."""

MILD = (
    "default dtype",
    "hooks on all modules or optimisers",
    "numpy's error state",
    "numpy's generator",
    "torch's generators",
    "random's generator",
    "float32 precision",
    "deterministic algorithms",
    "warnings filters",
    "environment",
    "threads",
)
"""Those with which a run still ends well, though with other numbers."""


class Meddling(torch.optim.lr_scheduler.LambdaLR):
    """A constant learning rate; when it is made it changes settings, or in its first step it starts a thread.

    The log then names the process.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, /, *, how: Literal["all", "mild", "thread"]) -> None:
        super().__init__(optimizer, lambda _: 1.0)
        for name in {"all": ALL, "mild": MILD, "thread": ()}[how]:
            WAYS[name]()
        self.how = how

    def step(self, epoch: int | None = None) -> None:
        """Take a step."""
        super().step(epoch)
        if getattr(self, "how", "") == "thread" and self.last_epoch == 1:
            logging.getLogger("ablate").info("process %d", os.getpid())
            threading.Thread(target=time.sleep, args=(600,), daemon=True, name="meddling").start()
