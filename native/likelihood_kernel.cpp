// log Z = log sum_s exp(c s) prod_i (1 + exp(b_i + (W s)_i)): a product, so that no logarithm is
// taken inside. The states s are split into a high and a low part and exp(W s) is a product of two
// tables, with each factor scaled by its largest value in the block so that nothing overflows. A
// block that comes near underflow is only bounded; if it could matter, all is done again in
// logarithms.
#include "likelihood.h"

#include <math.h>

#include "simd.h"

namespace FLEXPHASE_ISA {
namespace {

constexpr int kDoubles = kWidth / 2;
constexpr int64_t kLow = 9;  // low units at most
typedef double D __attribute__((vector_size(8 * kDoubles), aligned(8 * kDoubles)));

INLINE D fused(D a, D b, D c) {
#if defined(FLEXPHASE_ISA_avx512)
    return (D)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(FLEXPHASE_ISA_avx2)
    return (D)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}

int64_t padded(int64_t low) {
    const int64_t states = (int64_t)1 << low;
    return states < 8 ? 8 : states;
}
int64_t low_units(int64_t n) { return n < kLow ? n : kLow; }

int64_t scratch(int64_t n, int64_t m) { return padded(low_units(n)) * (m + 1) + 3 * m; }

// table[s] = exp(sum_j (w_j s_j - max(w_j, 0))) for all states s of `low` units; returns sum_j
// max(w_j, 0).
template <class Weight>
double fill(double* table, int64_t low, Weight weight) {
    double largest = 0;
    table[0] = 1;
    for (int64_t j = 0, size = 1; j < low; j++, size *= 2) {
        const double w = weight(j), top = w > 0 ? w : 0, on = exp(w - top), off = exp(-top);
        for (int64_t s = 0; s < size; s++) {
            table[size + s] = table[s] * on;
            table[s] *= off;
        }
        largest += top;
    }
    return largest;
}

// A state at a time, in logarithms: slow, never wrong. For weights so large that products
// underflow.
template <class Weight>
double by_logarithms(Weight w, const float* b, const float* c, int64_t n, int64_t m) {
    double top = -INFINITY, sum = 0;
    for (uint64_t s = 0; s < (uint64_t)1 << n; s++) {
        double x = 0;
        for (int64_t j = 0; j < n; j++)
            if (s >> j & 1) x += c[j];
        for (int64_t i = 0; i < m; i++) {
            double y = b[i];
            for (int64_t j = 0; j < n; j++)
                if (s >> j & 1) y += w(i, j);
            x += (y > 0 ? y : 0) + log1p(exp(-fabs(y)));
        }
        if (x != x) return x;
        if (x > top) {
            sum = sum * exp(top - x) + 1;
            top = x;
        } else {
            sum += exp(x - top);
        }
    }
    return top + log(sum);
}

double log_z(const float* W, int64_t si, int64_t sj, const float* b, const float* c, int64_t n,
             int64_t m, double* scratch) {
    const auto w = [=](int64_t i, int64_t j) { return (double)W[i * si + j * sj]; };
    const int64_t low = low_units(n), states = (int64_t)1 << low, size = padded(low);
    double *weight = scratch, *table = weight + size, *largest = table + size * m,
           *one = largest + m, *high = one + m;
    for (int64_t s = 0; s < size * (m + 1); s++) weight[s] = 0;
    const double offset = fill(weight, low, [&](int64_t j) { return (double)c[j]; });
    for (int64_t i = 0; i < m; i++)
        largest[i] = fill(table + i * size, low, [&](int64_t j) { return w(i, j); });
    for (int64_t s = states; s < size; s++) weight[s] = 0;

    constexpr double kTiny = 1e-290;
    double top = -INFINITY, sum = 0, doubt = -INFINITY;
    for (uint64_t h = 0; h < (uint64_t)1 << (n - low); h++) {
        double scale = offset;
        for (int64_t j = low; j < n; j++)
            if (h >> (j - low) & 1) scale += c[j];
        for (int64_t i = 0; i < m; i++) {
            double y = b[i] + largest[i];
            for (int64_t j = low; j < n; j++)
                if (h >> (j - low) & 1) y += w(i, j);
            const double e = exp(-fabs(y));  // factors 1 + e^y over e^max(y, 0)
            one[i] = y > 0 ? e : 1;
            high[i] = y > 0 ? 1 : e;
            scale += y > 0 ? y : 0;
        }
        D total = {};
        for (int64_t s = 0; s < size; s += 4 * kDoubles) {
            constexpr int kBlock = 4;
            D p[kBlock];
            const int64_t blocks = (size - s) / kDoubles < kBlock ? (size - s) / kDoubles : kBlock;
            for (int64_t k = 0; k < blocks; k++) p[k] = *(const D*)(weight + s + k * kDoubles);
            if (blocks == kBlock)
                for (int64_t i = 0; i < m; i++)
                    for (int k = 0; k < kBlock; k++)
                        p[k] *=
                            fused(D{} + high[i], *(const D*)(table + i * size + s + k * kDoubles),
                                  D{} + one[i]);
            else
                for (int64_t i = 0; i < m; i++)
                    for (int64_t k = 0; k < blocks; k++)
                        p[k] *=
                            fused(D{} + high[i], *(const D*)(table + i * size + s + k * kDoubles),
                                  D{} + one[i]);
            for (int64_t k = 0; k < blocks; k++) total += p[k];
        }
        double block = 0;
        for (int k = 0; k < kDoubles; k++) block += total[k];
        if (block != block) return block;
        if (block < kTiny) {
            const double bound = scale + log(kTiny) + (m + 1) * log(2.0);  // a factor is at most 2
            doubt = bound > doubt ? bound : doubt;
            continue;
        }
        const double x = scale + log(block);
        if (x > top) {
            sum = sum * exp(top - x) + 1;
            top = x;
        } else {
            sum += exp(x - top);
        }
    }
    return top - doubt > 40 ? top + log(sum) : by_logarithms(w, b, c, n, m);
}

}  // namespace

extern const LikelihoodKernels likelihood;
const LikelihoodKernels likelihood{&scratch, &log_z};

}  // namespace FLEXPHASE_ISA
