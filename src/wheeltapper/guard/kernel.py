"""One small CUDA kernel, and how it is compiled and launched without a compiler on the machine.

A call of torch costs the host 5 to 25 µs and every tensor it hands out another microsecond; a step of 150 tensors spent
1.5 ms so. This kernel takes the addresses of all tensors as one argument, and a launch through the driver costs a few
microseconds. NVRTC, which every CUDA build of torch brings along, compiles it once for the device at hand. No float is
added atomically: pieces are summed by fixed blocks in a fixed order, so that the same gradients give the same numbers.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from pathlib import Path
from typing import Any

import torch

TABLE = 448  # addresses in one launch: a kernel's arguments may have 4096 bytes
PIECE = 32768  # numbers that one block sums
THREADS = 256
NAME = "wheeltapper_step"
KINDS = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2, torch.float64: 3}

SOURCE = r"""
struct Table { unsigned long long at[TABLE]; };
struct Piece { int tensor, kind, count, whole; long long start; };  // the tensor in this table, and in all
struct Sample { unsigned long long data; int kind, count, run, unused; long long gap, at; double weight; };

__device__ __forceinline__ float half(unsigned int bits) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"((unsigned short)bits));
    return wide;
}
__device__ __forceinline__ float brain(unsigned int bits) { return __uint_as_float(bits << 16); }

// The sum over a block, in thread 0. Always added in the same order.
__device__ double together(double v) {
    __shared__ double part[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    __syncthreads();
    if (!lane) part[warp] = v;
    __syncthreads();
    v = threadIdx.x < (blockDim.x >> 5) ? part[threadIdx.x] : 0.0;
    if (!warp) for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
    return v;
}

template <int KIND> struct Of { typedef float Sum; };
template <> struct Of<3> { typedef double Sum; };

template <int KIND> __device__ __forceinline__ typename Of<KIND>::Sum one(const void* data, long long i) {
    if (KIND == 0) return ((const float*)data)[i];
    if (KIND == 1) return brain(((const unsigned short*)data)[i]);
    if (KIND == 2) return half(((const unsigned short*)data)[i]);
    return ((const double*)data)[i];
}

// The squares of the numbers in 16 bytes.
template <int KIND> __device__ __forceinline__ typename Of<KIND>::Sum some(uint4 v) {
    unsigned int word[4] = {v.x, v.y, v.z, v.w};
    typename Of<KIND>::Sum sum = 0;
    if (KIND == 3) {
        double a = __hiloint2double(v.y, v.x), b = __hiloint2double(v.w, v.z);
        return a * a + b * b;
    }
    #pragma unroll
    for (int k = 0; k < 4; k++) {
        if (KIND == 0) { float a = __uint_as_float(word[k]); sum += a * a; }
        else {
            float a = KIND == 1 ? brain(word[k] & 0xffffu) : half(word[k] & 0xffffu);
            float b = KIND == 1 ? brain(word[k] >> 16) : half(word[k] >> 16);
            sum += a * a + b * b;
        }
    }
    return sum;
}

template <int KIND> __device__ double squares_of(const char* data, int count) {
    typedef typename Of<KIND>::Sum Sum;
    const int wide = KIND == 0 ? 4 : KIND == 3 ? 2 : 8, step = blockDim.x;
    Sum s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int whole = ((unsigned long long)data & 15) ? 0 : count / wide;
    const uint4* v = (const uint4*)data;
    int i = threadIdx.x;
    for (; i + 3 * step < whole; i += 4 * step) {
        uint4 a = v[i], b = v[i + step], c = v[i + 2 * step], d = v[i + 3 * step];
        s0 += some<KIND>(a); s1 += some<KIND>(b); s2 += some<KIND>(c); s3 += some<KIND>(d);
    }
    for (; i < whole; i += step) s0 += some<KIND>(v[i]);
    for (int k = whole * wide + threadIdx.x; k < count; k += step) {
        Sum a = one<KIND>(data, k);
        s1 += a * a;
    }
    return ((double)s0 + (double)s1) + ((double)s2 + (double)s3);
}

// One block a tensor: its sampled coordinates against those held since before, which they replace.
__device__ void moves(Sample s, float* held, double* moved) {
    const void* data = (const void*)s.data;
    double size = 0, change = 0;
    for (int k = threadIdx.x; k < s.count; k += blockDim.x) {
        long long i = s.run ? (k / s.run) * s.gap + k % s.run : k;
        float now = s.kind == 0 ? one<0>(data, i) : s.kind == 1 ? one<1>(data, i)
            : s.kind == 2 ? one<2>(data, i) : (float)one<3>(data, i);
        float by = now - held[s.at + k];
        held[s.at + k] = now;
        size += (double)now * now;
        change += (double)by * by;
    }
    size = together(size);
    change = together(change);
    if (!threadIdx.x) {
        moved[0] = s.weight * size;
        moved[1] = s.weight * change;
    }
}

// The first blocks take a piece of a gradient each (one that is not there, at address 0, counts as zeros); the last of a
// tensor's to end adds them up. The next take a sampled tensor each. Whoever is the last of all to end writes: to `row`
// five scalars from where they are, the norms of every group's gradients and of every gradient; to `back`, which may be
// the row of the step before, how far the weights moved, and `mark` in its last place when all of it can be seen.
extern "C" __global__ void __launch_bounds__(THREADS) wheeltapper_step(
        const Table table, const Piece* pieces, double* sums, int begun, int parts,
        const Sample* samples, float* held, double* moved, int sampled,
        const int* first, double* squares, unsigned int* ended, int goal, const int* groups, int count, int tensors,
        float* row, float* back, float mark,
        const float* a, const float* b, const float* c, const float* d, const float* e) {
    __shared__ bool last;
    int block = blockIdx.x;
    if (block < parts) {
        Piece p = pieces[begun + block];
        const char* data = (const char*)table.at[p.tensor];
        double sum = 0;
        if (data) {
            data += p.start * (p.kind == 0 ? 4 : p.kind == 3 ? 8 : 2);
            sum = p.kind == 0 ? squares_of<0>(data, p.count) : p.kind == 1 ? squares_of<1>(data, p.count)
                : p.kind == 2 ? squares_of<2>(data, p.count) : squares_of<3>(data, p.count);
        }
        sum = together(sum);
        int from = first[p.whole], to = first[p.whole + 1];
        if (to - from > 1) {
            if (!threadIdx.x) {
                sums[begun + block] = sum;
                __threadfence();
                last = atomicAdd(ended + 1 + p.whole, 1u) == to - from - 1;
            }
            __syncthreads();
            if (!last) return;
            __threadfence();
            sum = 0;
            for (int k = from + threadIdx.x; k < to; k += blockDim.x) sum += __ldcg(sums + k);
            sum = together(sum);
            if (!threadIdx.x) ended[1 + p.whole] = 0;
        }
        if (!threadIdx.x) squares[p.whole] = sum;
    } else if (block - parts < sampled) moves(samples[block - parts], held, moved + 2 * (block - parts));
    __syncthreads();
    if (!threadIdx.x) {
        __threadfence();
        last = atomicAdd(ended, 1u) == goal - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    double size = 0, change = 0;
    for (int k = threadIdx.x; k < sampled; k += blockDim.x) {
        size += __ldcg(moved + 2 * k);
        change += __ldcg(moved + 2 * k + 1);
    }
    size = together(size);
    change = together(change);
    if (row) {
        for (int k = threadIdx.x; k < tensors; k += blockDim.x) row[7 + count + k] = (float)sqrt(__ldcg(squares + k));
        for (int g = threadIdx.x >> 5; g < count; g += blockDim.x >> 5) {
            double sum = 0;
            for (int k = groups[g] + (threadIdx.x & 31); k < groups[g + 1]; k += 32) sum += __ldcg(squares + k);
            for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
            if (!(threadIdx.x & 31)) row[7 + g] = (float)sqrt(sum);
        }
    }
    if (!threadIdx.x) {
        if (row && a) row[0] = *a;
        if (row && b) row[1] = *b;
        if (row && c) row[2] = *c;
        if (row && d) row[3] = *d;
        if (row && e) row[4] = *e;
        if (back && sampled) {
            back[5] = (float)sqrt(size);
            back[6] = (float)sqrt(change);
        }
        *ended = 0;
    }
    __threadfence_system();
    __syncthreads();
    if (!threadIdx.x && back) ((volatile float*)back)[7 + count + tensors] = mark;
}
"""

Addresses = ctypes.c_uint64 * TABLE


class Launch:
    """The kernel and its arguments, held where the driver reads them: to call it again only what changed is written."""

    def __init__(self, kernels: Kernels, blocks: int, args: list[Any]) -> None:
        self.args = args
        self.blocks = blocks
        self.call, self.function = kernels.driver.cuLaunchKernel, kernels.function
        self.pointers = (ctypes.c_void_p * len(args))(*map(ctypes.addressof, args))

    def __call__(self, stream: int) -> None:
        code = self.call(self.function, self.blocks, 1, 1, THREADS, 1, 1, 0, stream, self.pointers, None)
        if code:
            check(code, "a launch")


class Kernels:
    """The kernel, compiled and loaded for one device."""

    def __init__(self, index: int) -> None:
        self.driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        pointer, whole = ctypes.c_void_p, ctypes.c_uint
        self.driver.cuLaunchKernel.argtypes = [pointer, *[whole] * 7, pointer, pointer, pointer]
        major, minor = torch.cuda.get_device_capability(index)
        code = compiled(f"sm_{major}{minor}")
        with torch.cuda.device(index):
            torch.cuda.current_stream().query()  # so that torch's context is this thread's
            self._module, self.function = pointer(), pointer()
            check(self.driver.cuModuleLoadData(ctypes.byref(self._module), code), "loading")
            check(self.driver.cuModuleGetFunction(ctypes.byref(self.function), self._module, NAME.encode()), NAME)
            self.mapped(torch.empty(8, pin_memory=True).data_ptr())  # where the device cannot write there it fails here

    def mapped(self, host: int) -> int:
        """The address under which the device writes to pinned memory of the host."""
        found = ctypes.c_uint64()
        get = self.driver.cuMemHostGetDevicePointer_v2
        check(get(ctypes.byref(found), ctypes.c_void_p(host), ctypes.c_uint(0)), "pinned memory")
        return found.value


def check(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"{what} failed with code {code}")


@functools.cache
def load(index: int) -> Kernels:
    """The kernel for a CUDA device; raises where it cannot be had."""
    if not torch.version.cuda:
        raise RuntimeError("this torch is not built for CUDA")
    return Kernels(index)


@functools.cache
def compiled(architecture: str) -> bytes:
    """The kernel as machine code for an architecture such as sm_90."""
    nvrtc = compiler()
    source = f"#define TABLE {TABLE}\n#define THREADS {THREADS}\n{SOURCE}".encode()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"wheeltapper.cu", 0, None, None), "NVRTC")
    try:
        options = [f"--gpu-architecture={architecture}".encode()]
        if nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)):
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            said = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, said)
            raise RuntimeError(f"NVRTC: {said.value.decode(errors='replace')[:400]}")
        check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "NVRTC")
        code = ctypes.create_string_buffer(size.value)
        check(nvrtc.nvrtcGetCUBIN(program, code), "NVRTC")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def compiler() -> Any:
    """NVRTC as torch has it: by its name, else through the library of torch that depends on it."""
    major = (torch.version.cuda or "12").split(".")[0]
    beside = Path(torch.__file__).parent / "lib"
    if sys.platform == "win32":
        names = [f"nvrtc64_{major}0_0.dll", "nvrtc64_112_0.dll"]
    else:
        version = "11.2" if major == "11" else major
        names = [f"libnvrtc.so.{version}", str(beside / "libcaffe2_nvrtc.so"), "libnvrtc.so"]
        names += [str(found) for found in beside.parent.parent.glob(f"nvidia/*/lib/libnvrtc.so.{version}")]
    for name in names:
        try:
            found = ctypes.CDLL(name)
            found.nvrtcGetCUBIN  # noqa: B018
        except (OSError, AttributeError):
            continue
        return found
    raise RuntimeError("NVRTC was not found")
