// Random numbers for writes to devices, of all lanes of a walk.
#pragma once
#include "walk_lanes.h"

namespace FLEXPHASE_ISA {
namespace {

// One synapse after the other.
template <int N>
struct LaneDraws {
    using F = typename Vec<N>::F;
    const Walk<N>& walk;
    Rng<N> rng;
    BellQueue<N> queue;
    int64_t parameter = 0;  // in the order of the parameters in JAX, for given noise

    explicit LaneDraws(const Walk<N>& walk) : walk(walk), rng(walk.write_rng) {}
    F uniform() {
        if (__builtin_expect(walk.job.device.given != nullptr, 0)) return given(0) * kUnit;
        return FLEXPHASE_ISA::uniform<N>(rng);
    }
    F bell(int which) {
        if (__builtin_expect(walk.job.device.given != nullptr, 0)) return given(which);
        return queue.next(rng);
    }
    F given(int which) const {
        const DeviceJob& d = walk.job.device;
        F x{};
        for (int k = 0; k < N; k++) {
            const int64_t row = (walk.now * walk.job.lanes + walk.lane(k)) * 3 + which;
            x[k] = d.given[row * d.parameters + parameter];
        }
        return x;
    }
    // The generators after the writes; lanes without one keep theirs.
    Rng<N> after(typename Vec<N>::I wrote) const {
        return chosen<N>(wrote, rng, walk.write_rng);
    }
};

}  // namespace
}  // namespace FLEXPHASE_ISA
