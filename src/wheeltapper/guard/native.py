"""The part of a step that touches every gradient, in C++ where the machine has a compiler.

A call into torch from Python costs a slow host half a microsecond for each tensor, and a step needs several of each: where
they lie, of what kind they are, who wrote to them. Compiled against torch's own headers the same takes a tenth. It is
compiled only where WHEELTAPPER_NATIVE=1 asks for it. Nothing waits for it: a compiler runs in a process of its own, at the
lowest priority, once for each version of torch (about 15 s), and its result is kept in the user's cache folder. Until then,
without a compiler, and where nobody asked, the guard does all of it in Python, with the same numbers.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import torch

from wheeltapper.guard.kernel import THREADS, Launch

log = logging.getLogger("wheeltapper.guard")

STALE = 600  # seconds after which a compiler that left no library has died

SOURCE = r"""
#include <torch/csrc/autograd/python_variable.h>

typedef int (*Launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);

struct Job {
    PyObject *params, *sampled;
    int64_t count, few;
    int64_t* sizes;
    int64_t* kinds;
    int64_t type, index;
    uint64_t* table;
    const uint64_t* at;
    int64_t* stepped;
    uint64_t* loss;
    Launch launch;
    void* function;
    void** pointers;
    int64_t blocks, threads;
};

static const at::Tensor& item(PyObject* list, int64_t k) { return THPVariable_Unpack(PyList_GET_ITEM(list, k)); }

static bool here(const Job* j, const at::Tensor& t) {
    return !t.unsafeGetTensorImpl()->is_python_dispatch() && t.layout() == at::kStrided && t.has_storage()
        && (int64_t)t.device().type() == j->type && (int64_t)t.device().index() == j->index;
}

// What the parameters are like.
extern "C" int wheeltapper_bind(Job* j) {
    try {
        if (PyList_GET_SIZE(j->params) != j->count || PyList_GET_SIZE(j->sampled) != j->few || !j->count) return 0;
        for (int64_t k = 0; k < j->count; k++) {
            const at::Tensor& p = item(j->params, k);
            if (!k) {
                j->type = (int64_t)p.device().type();
                j->index = (int64_t)p.device().index();
            }
            if (!here(j, p)) return 0;
            j->sizes[k] = p.numel();
            j->kinds[k] = (int64_t)p.scalar_type();
        }
        return 1;
    } catch (...) { return 0; }
}

// Where the gradients lie, all of the kind that was bound and each in one piece of memory, and the loss; the weights must
// lie where they did. Then launch. 0: not so, find out why; 1: done; 3: done, and nobody wrote to the weights since `stepped`.
extern "C" int wheeltapper_go(Job* j, PyObject* loss, void* stream) {
    try {
        bool any = false, same = true;
        if (j->launch) {
            if (!THPVariable_CheckExact(loss)) return 0;
            const at::Tensor& l = THPVariable_Unpack(loss);
            if (!here(j, l) || l.scalar_type() != at::kFloat || l.numel() != 1) return 0;
            *j->loss = (uint64_t)l.data_ptr();
        }
        for (int64_t k = 0; k < j->count; k++) {
            const at::Tensor& g = item(j->params, k).grad();
            j->table[k] = 0;
            if (!g.defined()) continue;
            if (!here(j, g) || (int64_t)g.scalar_type() != j->kinds[k] || g.numel() != j->sizes[k]
                || !g.is_non_overlapping_and_dense()) return 0;
            j->table[k] = (uint64_t)g.data_ptr();
            any = true;
        }
        for (int64_t k = 0; k < j->few; k++) {
            const at::Tensor& p = item(j->sampled, k);
            if ((uint64_t)p.data_ptr() != j->at[k]) return 0;
            same = same && (int64_t)p._version() == j->stepped[k];
        }
        if (!any) return 0;
        if (j->launch) {
            PyThreadState* held = PyEval_SaveThread();  // a launch waits where the queue is full
            int code = j->launch(j->function, j->blocks, 1, 1, j->threads, 1, 1, 0, stream, j->pointers, nullptr);
            PyEval_RestoreThread(held);
            if (code) return -code;
        }
        return same ? 3 : 1;
    } catch (...) { return 0; }
}

extern "C" int wheeltapper_stepped(Job* j) {
    try {
        for (int64_t k = 0; k < j->few; k++) j->stepped[k] = (int64_t)item(j->sampled, k)._version();
        return 1;
    } catch (...) { return 0; }
}
"""


class Job(ctypes.Structure):
    _fields_ = [
        ("params", ctypes.py_object),
        ("sampled", ctypes.py_object),
        *((name, ctypes.c_int64) for name in ("count", "few")),
        *((name, ctypes.c_void_p) for name in ("sizes", "kinds")),
        *((name, ctypes.c_int64) for name in ("type", "index")),
        *((name, ctypes.c_void_p) for name in ("table", "at", "stepped", "loss", "launch", "function", "pointers")),
        *((name, ctypes.c_int64) for name in ("blocks", "threads")),
    ]


class Native:
    """The step of one Straight: its parameters, the sampled ones and where they lie, and the launch that it makes."""

    def __init__(self, library: Any, params: list[Any], sampled: list[Any], at: list[int], launch: Launch) -> None:
        whole = ctypes.c_int64 * max(len(params), len(sampled), 1)
        self.at = at
        self._held: list[Any] = [
            whole(),
            whole(),
            (ctypes.c_uint64 * max(len(at), 1))(*at),
            whole(),
            launch,
            params,
            sampled,
        ]
        sizes, kinds, places, self._stepped = (ctypes.addressof(h) for h in self._held[:4])
        self._job = Job(params, sampled, len(params), len(sampled), sizes, kinds, 0, 0)
        self._job.table, self._job.at, self._job.stepped = ctypes.addressof(launch.args[0]), places, self._stepped
        self._job.function, self._job.pointers = launch.function, ctypes.addressof(launch.pointers)
        self._job.threads = THREADS
        self._place = ctypes.addressof(self._job)
        self._go, self._read = library.wheeltapper_go, library.wheeltapper_stepped
        if not library.wheeltapper_bind(self._place):
            raise RuntimeError("the parameters are not plain tensors")

    def agrees(self, now: list[int]) -> bool:
        """Whether it finds the gradients where Python did. Launches nothing."""
        self._job.launch = None
        return bool(self._go(self._place, None, None)) and self._held[4].args[0][: len(now)] == now

    def ready(self, call: Any, loss: Any, blocks: int) -> None:
        """Launch by `call`, of the driver, with so many blocks, and the address of the loss in this cell."""
        self._job.launch = ctypes.cast(call, ctypes.c_void_p)
        self._job.loss, self._job.blocks = ctypes.addressof(loss), blocks

    def go(self, loss: Any, stream: int) -> int:
        code: int = self._go(self._place, loss, stream)
        if code < 0:
            raise RuntimeError(f"a launch failed with code {-code}")
        return code

    def stepped(self) -> None:
        """Note how often the weights were written to."""
        self._read(self._place)

    def versions(self) -> list[int]:
        """What `stepped` has noted."""
        return list(self._held[3][: self._job.few])


class Build:
    """The library, or the compiler at work on it. One for the process."""

    def __init__(self) -> None:
        self.library: Any = None
        self.over = os.environ.get("WHEELTAPPER_NATIVE") != "1" or sys.platform == "win32"
        self._process: subprocess.Popen[bytes] | None = None
        self._path: Path | None = None

    def ask(self) -> Any:
        """The library once it is there; None until then, and for ever where it cannot be made."""
        if self.library is None and not self.over:
            try:
                self._look()
            except Exception as error:
                self._give_up(error)
        return self.library

    def wait(self, seconds: float) -> Any:
        """For benchmarks and tests."""
        end = time.monotonic() + seconds
        while self.ask() is None and not self.over and time.monotonic() < end:
            time.sleep(0.1)
        return self.library

    def _look(self) -> None:
        if self._path is None:
            self._path = folder() / f"guard-{key()}.so"
        code = self._process.poll() if self._process is not None else None
        if self._path.exists():
            self.library = load(self._path)
        elif self._process is not None and code:
            self._give_up(f"the compiler ended with {code}")
        elif self._process is None and locked(self._path):
            try:
                self._process = start(self._path)
            except Exception:
                self._path.with_suffix(".lock").unlink()
                raise

    def _give_up(self, why: object) -> None:
        self.over = True
        log.info("the guard goes without its part in C++, which costs the host more: %s", why)


BUILD = Build()


def folder() -> Path:
    """The user's own, or the library is not loaded from there."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wheeltapper"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = place.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{place} can be written to by others")
    return place


def key() -> str:
    parts = (
        SOURCE,
        torch.__version__,
        sys.implementation.cache_tag,
        platform.machine(),
        str(Path(torch.__file__).parent),
    )
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def locked(path: Path) -> bool:
    """Whether it is ours to make: one process does, the others find it when it is there."""
    lock = path.with_suffix(".lock")
    with contextlib.suppress(OSError):
        if time.time() - lock.stat().st_mtime > STALE:
            lock.unlink()
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True


def start(path: Path) -> subprocess.Popen[bytes]:
    """The compiler, on its way. It renames what it has made, so that none sees half of it, also if we are gone by then."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise RuntimeError("there is no C++ compiler")
    base = Path(torch.__file__).parent
    includes = [
        base / "include",
        base / "include" / "torch" / "csrc" / "api" / "include",
        sysconfig.get_paths()["include"],
    ]
    half = path.with_suffix(f".{os.getpid()}")
    source = path.with_suffix(f".{os.getpid()}.cpp")
    source.write_text(SOURCE, encoding="utf-8")
    command = [
        *shlex.split(compiler), "-O1", "-w", "-shared", "-fPIC", *(f"-I{i}" for i in includes), str(source), "-o", str(half),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        f"-L{base / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10",
    ]  # fmt: skip
    made, once, twice = (
        shlex.join(c) for c in (["mv", str(half), str(path)], [*command, "-std=c++20"], [*command, "-std=c++17"])
    )
    tidy = shlex.join(["rm", "-f", str(source), str(half), str(path.with_suffix(".lock"))])
    script = f"({once} || {twice}) && {made}; code=$?; {tidy}; exit $code"
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(["nice", "-n", "19", "sh", "-c", script], **quiet)  # type: ignore[call-overload,no-any-return]


def load(path: Path) -> Any:
    library = ctypes.PyDLL(str(path))  # which holds the interpreter's lock: it touches Python's objects
    pointer = ctypes.c_void_p
    library.wheeltapper_bind.argtypes = library.wheeltapper_stepped.argtypes = [pointer]
    library.wheeltapper_go.argtypes = [pointer, ctypes.py_object, pointer]
    return library
