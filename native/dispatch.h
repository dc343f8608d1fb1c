// The choice of the instruction set. Every *_kernel.cpp is compiled once for each of them, into a
// namespace of that name (see CMakeLists.txt), and fills one table of functions there.
#pragma once
#include <nanobind/nanobind.h>

#include <initializer_list>
#include <string>
#include <vector>

// FLEXPHASE_DECLARE(Table, name) makes the tables `name` of all namespaces known;
// FLEXPHASE_TABLES(name) lists them, best first.
#if defined(FLEXPHASE_X86)
#define FLEXPHASE_DECLARE(Table, name) \
    namespace baseline {               \
    extern const Table name;           \
    }                                  \
    namespace avx2 {                   \
    extern const Table name;           \
    }                                  \
    namespace avx512 {                 \
    extern const Table name;           \
    }
#define FLEXPHASE_TABLES(name) {&avx512::name, &avx2::name, &baseline::name}
#else
#define FLEXPHASE_DECLARE(Table, name) \
    namespace baseline {               \
    extern const Table name;           \
    }
#define FLEXPHASE_TABLES(name) {&baseline::name}
#endif

struct Isa {
    const char* name;
    bool works_here;
};

// In the order of FLEXPHASE_TABLES.
inline std::vector<Isa> built_isas() {
#if defined(FLEXPHASE_X86)
    const bool fma = __builtin_cpu_supports("fma");
    const bool avx2 = fma && __builtin_cpu_supports("avx2");
    const bool avx512 = fma && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl");
    return {{"avx512", avx512}, {"avx2", avx2}, {"baseline", true}};
#else
    return {{"baseline", true}};
#endif
}

// The table of the instruction set of that name, or of the best one if the name is empty.
template <class Table>
const Table& choose(std::initializer_list<const Table*> tables, const std::string& isa) {
    const Table* const* table = tables.begin();
    for (const Isa& built : built_isas()) {
        if (built.works_here && (isa.empty() || isa == built.name)) return **table;
        table++;
    }
    throw nanobind::value_error(("this machine has no instruction set " + isa + ".").c_str());
}
