// The way from Python into the Boltzmann kernels: checks, threads, and the choice of the instruction set.
#include "boltzmann.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "isa.h"
#include "threads.h"

namespace baseline { extern const Kernels kernels; }
#if defined(FLEXPHASE_X86)
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }
#endif

namespace {

std::vector<const Kernels*> available() {
    std::vector<const Kernels*> found;
#if defined(FLEXPHASE_X86)
    if (has_avx512()) found.push_back(&avx512::kernels);
    if (has_avx2()) found.push_back(&avx2::kernels);
#endif
    found.push_back(&baseline::kernels);
    return found;
}

const Kernels& choose(const std::string& isa) {
    for (const Kernels* k : available())
        if (isa.empty() || isa == k->name) return *k;
    throw nb::value_error(("this machine has no instruction set " + isa + ".").c_str());
}

// A group of lanes takes about the same time whatever its width: the fewest rounds, and then the narrowest groups.
const SmallKernel& fitting(const SmallKernel* kernels, int64_t lanes, int64_t threads) {
    const SmallKernel* best = nullptr;
    int64_t fewest = 0;
    for (int i = 0; i < 3; i++) {
        const SmallKernel& k = kernels[i];
        if (!k.width) continue;
        const int64_t groups = (lanes + k.width - 1) / k.width, rounds = (groups + threads - 1) / threads;
        if (!best || rounds < fewest) best = &k, fewest = rounds;
    }
    return *best;
}

void complain(int32_t error) {
    switch (error) {
        case kTapeTooShort: throw nb::value_error("the tape of phases ends before the ticks do.");
        case kBadTicks: throw nb::value_error("a phase must last at least one tick.");
        case kBadRow: throw nb::value_error("a phase names a row that the data do not have.");
        case kNotLocal: throw nb::value_error("a temporally local estimator must step wherever its weight is not zero.");
        default: return;
    }
}

struct Options {
    int64_t ticks;
    int negative_start;
    bool visible_bias, remember;
    int threads;
};

// What RBMs and general Boltzmann machines share: units, phases, stimuli and noise.
RbmJob job_of(Arrays& in, const Options& o, int64_t L, int64_t V, int64_t H) {
    const int64_t slots = in.shape("ticks", 2)[1];
    const auto data = in.shape("data", 3);
    if (data[0] != 1 && data[0] != L) throw nb::value_error("data must have one leading entry, or one for each lane.");
    if (o.ticks < 0 || o.negative_start < kCarry || o.negative_start > kRandom || o.threads < 1)
        throw nb::value_error("ticks must not be negative, threads at least 1, and negative_start one of 0, 1, 2, 3.");
    RbmJob job{};
    job.lanes = L, job.visible = V, job.hidden = H, job.ticks = o.ticks, job.rows = data[1];
    job.visible_bias = o.visible_bias, job.remember = o.remember, job.negative_start = o.negative_start;
    job.v = in.writable<float>("v", {L, V}), job.h = in.writable<float>("h", {L, H}), job.x = in.writable<float>("x", {L, V});
    if (o.negative_start == kPersistent) job.chain_v = in.writable<float>("chain_v", {L, V}), job.chain_h = in.writable<float>("chain_h", {L, H});
    job.left = in.writable<int32_t>("left", {L}), job.slot = in.writable<int32_t>("slot", {L}), job.updates = in.writable<int32_t>("updates", {L});
    job.tape.slots = slots;
    job.tape.ticks = in.readable<int32_t>("ticks", {L, slots}), job.tape.row = in.readable<int32_t>("row", {L, slots});
    job.tape.sign = in.readable<int8_t>("sign", {L, slots});
    job.tape.weight = in.readable<float>("weight", {L, slots, 3});
    job.tape.apply = (const uint8_t*)in.readable<bool>("apply", {L, slots, 3});
    if (in.has("enter")) job.tape.enter = in.readable<float>("enter", {L, slots, V + H});
    job.eta = in.readable<float>("eta", {L});
    job.data = in.readable<uint32_t>("data", {data[0], data[1], words(V)});
    job.data_stride = data[0] == 1 ? 0 : data[1] * words(V);
    if (in.has("noise")) job.noise = in.readable<float>("noise", {o.ticks, L, V + H});
    return job;
}

void run_groups(const RbmJob& job, const SmallKernel* kernels, int threads) {
    std::atomic<int32_t> error{kFine};
    const SmallKernel& k = fitting(kernels, job.lanes, threads);
    {
        nb::gil_scoped_release release;
        parallel<float>((job.lanes + k.width - 1) / k.width, threads, k.scratch(job), [&](int64_t g, float* scratch) {
            const int64_t begin = g * k.width;
            if (int32_t e = k.run(job, begin, std::min<int64_t>(k.width, job.lanes - begin), scratch)) error = e;
        });
    }
    complain(error);
}

void rbm(nb::dict dict, int64_t ticks, int negative_start, bool visible_bias, bool remember, int threads, bool wide, const std::string& isa) {
    Arrays in(dict);
    const auto shape = in.shape("W", 3);
    const int64_t L = shape[0], V = shape[1], H = shape[2];
    if (V < 1 || H < 1) throw nb::value_error("an RBM needs at least one visible and one hidden unit.");
    RbmJob job = job_of(in, {ticks, negative_start, visible_bias, remember, threads}, L, V, H);
    job.W = in.writable<float>("W", {L, V, H}), job.a = in.writable<float>("a", {L, V}), job.c = in.writable<float>("c", {L, H});
    if (remember) {
        job.acc_W = in.writable<float>("acc_W", {L, V, H});
        job.acc_a = in.writable<float>("acc_a", {L, V}), job.acc_c = in.writable<float>("acc_c", {L, H});
    }
    const Kernels& kernels = choose(isa);
    if (!wide) {
        job.rng = in.writable<uint32_t>("rng", {L, 4});
        return run_groups(job, kernels.small, threads);
    }
    job.rng = in.writable<uint32_t>("rng", {L, 4, 16});
    job.base_W = in.writable<float>("base_W", {L, V, H});
    job.base_a = in.writable<float>("base_a", {L, V}), job.base_c = in.writable<float>("base_c", {L, H});
    job.drive = in.writable<float>("drive", {L, H}), job.gathered = in.writable<float>("gathered", {L, H + 1});
    std::atomic<int32_t> error{kFine};
    {
        nb::gil_scoped_release release;
        parallel<float>(L, threads, kernels.wide->scratch(job), [&](int64_t lane, float* scratch) {
            if (int32_t e = kernels.wide->run(job, lane, scratch)) error = e;
        });
    }
    complain(error);
}

void machine(nb::dict dict, int64_t ticks, int negative_start, bool visible_bias, bool remember, int threads, const std::string& isa) {
    Arrays in(dict);
    const auto shape = in.shape("v", 2);
    const int64_t L = shape[0], V = shape[1], H = in.shape("h", 2)[1], n = V + H, pairs = in.shape("joined", 1)[0];
    if (V < 1) throw nb::value_error("a Boltzmann machine needs at least one visible unit.");
    RbmJob job = job_of(in, {ticks, negative_start, visible_bias, remember, threads}, L, V, H);
    job.W = in.writable<float>("W", {L, n, n}), job.a = in.writable<float>("a", {L, n}), job.rng = in.writable<uint32_t>("rng", {L, 4});
    if (remember) job.acc_W = in.writable<float>("acc_W", {L, n, n}), job.acc_a = in.writable<float>("acc_a", {L, n});
    job.order = in.readable<int32_t>("order", {n}), job.first = in.readable<int32_t>("first", {n + 1}), job.joined = in.readable<int32_t>("joined", {pairs});
    bool fine = job.first[0] == 0 && job.first[n] == pairs;
    for (int64_t i = 0; i < n; i++) fine = fine && job.first[i] <= job.first[i + 1] && job.order[i] >= 0 && job.order[i] < n;
    for (int64_t p = 0; p < pairs; p++) fine = fine && job.joined[p] >= 0 && job.joined[p] < n;
    if (!fine) throw nb::value_error("order, first and joined must name units of the machine.");
    run_groups(job, choose(isa).machine, threads);
}

std::vector<std::string> isas() {
    std::vector<std::string> names;
    for (const Kernels* k : available()) names.push_back(k->name);
    return names;
}

}  // namespace

void bind_boltzmann(nb::module_& m) {
    using namespace nb::literals;
    m.def("isas", &isas, "The instruction sets that can be used here, best first.");
    m.def("rbm", &rbm, "arrays"_a, "ticks"_a, "negative_start"_a, "visible_bias"_a, "remember"_a, "threads"_a, "wide"_a, "isa"_a = "",
          "Move all lanes of an RBM on by some ticks, in place.");
    m.def("machine", &machine, "arrays"_a, "ticks"_a, "negative_start"_a, "visible_bias"_a, "remember"_a, "threads"_a, "isa"_a = "",
          "Move all lanes of a general Boltzmann machine on by some ticks, in place.");
}
