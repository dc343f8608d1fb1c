// The instruction sets that this build holds and this machine understands, best first.
#pragma once
#include <cstdlib>
#include <cstring>

inline bool has_avx512() {
#if defined(FLEXPHASE_X86)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

inline bool has_avx2() {
#if defined(FLEXPHASE_X86)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}
