// Exact log Z of small RBMs.
#pragma once
#include <cstdint>

struct LikelihoodKernels {
    // Doubles of scratch for an RBM whose layer of n units is enumerated and whose other layer has
    // m.
    int64_t (*scratch)(int64_t n, int64_t m);
    // log sum over all states; w(i, j) = W[i * si + j * sj] joins unit i of the summed layer (bias
    // b) and j of the enumerated one (bias c).
    double (*log_z)(const float* W, int64_t si, int64_t sj, const float* b, const float* c,
                    int64_t n, int64_t m, double* scratch);
};
