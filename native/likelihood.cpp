// Exact log Z and NLL of small RBMs, all lanes at once.
#include "likelihood.h"

#include <nanobind/nanobind.h>

#include <cmath>

#include "arrays.h"
#include "dispatch.h"
#include "threads.h"

FLEXPHASE_DECLARE(LikelihoodKernels, likelihood)

namespace {

// sum_rows F(v), F(v) = -a v - sum_j softplus(c_j + (v W)_j).
double free_energies(const float* W, const float* a, const float* c, const float* data,
                     int64_t rows, int64_t V, int64_t H, double* drive) {
    double sum = 0;
    for (int64_t r = 0; r < rows; r++, data += V) {
        for (int64_t j = 0; j < H; j++) drive[j] = c[j];
        for (int64_t i = 0; i < V; i++)
            if (data[i] != 0) {
                sum -= (double)data[i] * a[i];
                for (int64_t j = 0; j < H; j++) drive[j] += (double)data[i] * W[i * H + j];
            }
        for (int64_t j = 0; j < H; j++)
            sum -= std::max(drive[j], 0.0) + std::log1p(std::exp(-std::fabs(drive[j])));
    }
    return sum;
}

void rbm_nll(nb::dict dict, int threads) {
    Arrays in(dict);
    const auto shape = in.shape("W", 3);
    const int64_t L = shape[0], V = shape[1], H = shape[2], rows = in.shape("data", 2)[0],
                  n = std::min(V, H);
    if (V < 1 || H < 1 || threads < 1)
        throw nb::value_error(
            "an RBM needs at least one visible and one hidden unit, and threads must be at least "
            "1.");
    if (n > 30) throw nb::value_error("the smaller layer has too many units to enumerate.");
    const float* W = in.readable<float>("W", {L, V, H});
    const float* a = in.readable<float>("a", {L, V});
    const float* c = in.readable<float>("c", {L, H});
    const float* data = in.readable<float>("data", {rows, V});
    double* out = in.writable<double>("nll", {L});
    const LikelihoodKernels& k = choose<LikelihoodKernels>(FLEXPHASE_TABLES(likelihood), "");
    nb::gil_scoped_release release;
    parallel<double>(
        L, threads, std::max(k.scratch(n, std::max(V, H)), H), [&](int64_t l, double* scratch) {
            const float *Wl = W + l * V * H, *al = a + l * V, *cl = c + l * H;
            const double log_z = H <= V ? k.log_z(Wl, H, 1, al, cl, H, V, scratch)
                                        : k.log_z(Wl, 1, H, cl, al, V, H, scratch);
            out[l] = free_energies(Wl, al, cl, data, rows, V, H, scratch) + rows * log_z;
        });
}

}  // namespace

void bind_likelihood(nb::module_& m) {
    using namespace nb::literals;
    m.def("rbm_nll", &rbm_nll, "arrays"_a, "threads"_a,
          "NLL in nats, summed over the rows of the data, of every lane.");
}
