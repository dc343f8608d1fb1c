// The way from Python into the Boltzmann kernels: checks, threads, and the choice of the
// instruction set.
#include "boltzmann.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <vector>

#include "dispatch.h"
#include "tape_arrays.h"
#include "threads.h"

FLEXPHASE_DECLARE(BoltzmannKernels, boltzmann)

namespace {

// A group of lanes takes about the same time whatever its width: the fewest rounds, and then the
// narrowest groups.
const SmallKernel& fitting(const SmallKernel* kernels, int64_t lanes, int64_t threads) {
    const SmallKernel* best = nullptr;
    int64_t fewest = 0;
    for (int i = 0; i < 3; i++) {
        const SmallKernel& k = kernels[i];
        if (!k.width) continue;
        const int64_t groups = (lanes + k.width - 1) / k.width;
        const int64_t rounds = (groups + threads - 1) / threads;
        if (!best || rounds < fewest) {
            best = &k;
            fewest = rounds;
        }
    }
    return *best;
}

struct Options {
    int64_t ticks;
    int negative_start;
    bool visible_bias, remember;
    int threads;
    bool stochastic, levels;  // of the devices, where there are any
};

// Devices, if one of their numbers is given. Generators have the shape of those of the units.
DeviceJob device_of(Arrays& in, const Options& o, std::vector<int64_t> rng, int64_t parameters) {
    const int64_t L = rng[0];
    auto number = [&](const char* name) {
        return in.has(name) ? in.readable<float>(name, {L}) : nullptr;
    };
    DeviceJob device{};
    device.range = number("range");
    device.step = number("step");
    device.noise = number("write_noise");
    device.proportional = number("proportional");
    device.asymmetry = number("asymmetry");
    device.on = device.range || device.step || device.noise || device.proportional ||
                device.asymmetry;
    device.stochastic = o.stochastic;
    device.levels = o.levels;
    device.parameters = parameters;
    if (o.levels && !(device.range && device.step))
        throw nb::value_error("levels need a range and a step.");
    for (int64_t l = 0; l < L; l++)
        if ((device.step && !(device.step[l] > 0)) || (device.range && !(device.range[l] > 0)))
            throw nb::value_error("range and step of a device must be above 0.");
    if (device.noise || device.proportional || (device.step && o.stochastic))
        device.rng = in.writable<uint32_t>("write_rng", rng);
    if (in.has("given")) device.given = in.readable<float>("given", {o.ticks, L, 3, parameters});
    return device;
}

// What RBMs and general Boltzmann machines share: units, phases, stimuli and noise.
RbmJob job_of(Arrays& in, const Options& o, int64_t L, int64_t V, int64_t H) {
    const auto data = in.shape("data", 3);
    if (data[0] != 1 && data[0] != L)
        throw nb::value_error("data must have one leading entry, or one for each lane.");
    if (o.ticks < 0 || o.negative_start < kCarry || o.negative_start > kRandom || o.threads < 1)
        throw nb::value_error(
            "ticks must not be negative, threads at least 1, and negative_start one of 0, 1, 2, "
            "3.");
    RbmJob job{};
    job.lanes = L;
    job.visible = V;
    job.hidden = H;
    job.ticks = o.ticks;
    job.rows = data[1];
    job.visible_bias = o.visible_bias;
    job.remember = o.remember;
    job.negative_start = o.negative_start;
    job.v = in.writable<float>("v", {L, V});
    job.h = in.writable<float>("h", {L, H});
    job.x = in.writable<float>("x", {L, V});
    if (o.negative_start == kPersistent) {
        job.chain_v = in.writable<float>("chain_v", {L, V});
        job.chain_h = in.writable<float>("chain_h", {L, H});
    }
    job.tape = tape_of(in, L);
    set_place(in, job);
    if (in.has("enter")) job.tape.enter = in.readable<float>("enter", {L, job.tape.slots, V + H});
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
        parallel<float>((job.lanes + k.width - 1) / k.width, threads, k.scratch(job),
                        [&](int64_t g, float* scratch) {
                            const int64_t begin = g * k.width;
                            const int64_t count = std::min<int64_t>(k.width, job.lanes - begin);
                            if (int32_t e = k.run(job, begin, count, scratch)) error = e;
                        });
    }
    complain(error);
}

void rbm(nb::dict dict, int64_t ticks, int negative_start, bool visible_bias, bool remember,
         int threads, bool wide, const std::string& isa, bool stochastic, bool levels) {
    Arrays in(dict);
    const auto shape = in.shape("W", 3);
    const int64_t L = shape[0], V = shape[1], H = shape[2];
    if (V < 1 || H < 1)
        throw nb::value_error("an RBM needs at least one visible and one hidden unit.");
    const Options options{ticks,   negative_start, visible_bias, remember,
                          threads, stochastic,     levels};
    RbmJob job = job_of(in, options, L, V, H);
    job.W = in.writable<float>("W", {L, V, H});
    job.a = in.writable<float>("a", {L, V});
    job.c = in.writable<float>("c", {L, H});
    if (remember) {
        job.acc_W = in.writable<float>("acc_W", {L, V, H});
        job.acc_a = in.writable<float>("acc_a", {L, V});
        job.acc_c = in.writable<float>("acc_c", {L, H});
    }
    const BoltzmannKernels& kernels = choose<BoltzmannKernels>(FLEXPHASE_TABLES(boltzmann), isa);
    if (!wide) {
        job.rng = in.writable<uint32_t>("rng", {L, 4});
        job.device = device_of(in, options, {L, 4}, V * H + V + H);
        return run_groups(job, kernels.small, threads);
    }
    job.rng = in.writable<uint32_t>("rng", {L, 4, 16});
    job.device = device_of(in, options, {L, 4, 16}, V * H + V + H);
    job.base_W = in.writable<float>("base_W", {L, V, H});
    job.base_a = in.writable<float>("base_a", {L, V});
    job.base_c = in.writable<float>("base_c", {L, H});
    job.drive = in.writable<float>("drive", {L, H});
    job.gathered = in.writable<float>("gathered", {L, H + 1});
    std::atomic<int32_t> error{kFine};
    {
        nb::gil_scoped_release release;
        parallel<float>(L, threads, kernels.wide->scratch(job), [&](int64_t lane, float* scratch) {
            if (int32_t e = kernels.wide->run(job, lane, scratch)) error = e;
        });
    }
    complain(error);
}

void machine(nb::dict dict, int64_t ticks, int negative_start, bool visible_bias, bool remember,
             int threads, const std::string& isa, bool stochastic, bool levels) {
    Arrays in(dict);
    const auto shape = in.shape("v", 2);
    const int64_t L = shape[0], V = shape[1], H = in.shape("h", 2)[1], n = V + H,
                  pairs = in.shape("joined", 1)[0];
    if (V < 1) throw nb::value_error("a Boltzmann machine needs at least one visible unit.");
    const Options options{ticks,   negative_start, visible_bias, remember,
                          threads, stochastic,     levels};
    RbmJob job = job_of(in, options, L, V, H);
    job.device = device_of(in, options, {L, 4}, n * n + n);
    job.W = in.writable<float>("W", {L, n, n});
    job.a = in.writable<float>("a", {L, n});
    job.rng = in.writable<uint32_t>("rng", {L, 4});
    if (remember) {
        job.acc_W = in.writable<float>("acc_W", {L, n, n});
        job.acc_a = in.writable<float>("acc_a", {L, n});
    }
    job.order = in.readable<int32_t>("order", {n});
    job.first = in.readable<int32_t>("first", {n + 1});
    job.joined = in.readable<int32_t>("joined", {pairs});
    if (job.device.on) job.mirror = in.readable<int32_t>("mirror", {pairs});
    bool fine = job.first[0] == 0 && job.first[n] == pairs;
    for (int64_t i = 0; i < n; i++)
        fine = fine && job.first[i] <= job.first[i + 1] && job.order[i] >= 0 && job.order[i] < n;
    for (int64_t p = 0; p < pairs; p++)
        fine = fine && job.joined[p] >= 0 && job.joined[p] < n &&
               (!job.mirror || (job.mirror[p] >= 0 && job.mirror[p] < pairs));
    if (!fine)
        throw nb::value_error("order, first, joined and mirror must name units of the machine.");
    run_groups(job, choose<BoltzmannKernels>(FLEXPHASE_TABLES(boltzmann), isa).machine, threads);
}

}  // namespace

void bind_boltzmann(nb::module_& m) {
    using namespace nb::literals;
    m.def("rbm", &rbm, "arrays"_a, "ticks"_a, "negative_start"_a, "visible_bias"_a, "remember"_a,
          "threads"_a, "wide"_a, "isa"_a = "", "stochastic"_a = false, "levels"_a = false,
          "Move all lanes of an RBM on by some ticks, in place.");
    m.def("machine", &machine, "arrays"_a, "ticks"_a, "negative_start"_a, "visible_bias"_a,
          "remember"_a, "threads"_a, "isa"_a = "", "stochastic"_a = false, "levels"_a = false,
          "Move all lanes of a general Boltzmann machine on by some ticks, in place.");
}
