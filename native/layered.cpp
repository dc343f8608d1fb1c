// The way from Python into the kernels of layered networks: checks, threads, and the choice of the
// instruction set.
#include "layered.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "dispatch.h"
#include "tape_arrays.h"
#include "threads.h"

FLEXPHASE_DECLARE(LayeredKernels, layered)

namespace {

using Sizes = std::vector<int64_t>;

std::string name(int64_t layer, const char* what) { return std::to_string(layer) + "." + what; }

// Layers of these sizes, the input first: their shapes, parameters and activations.
template <class Job>
int64_t set_layers(Arrays& in, Job& job, const Sizes& sizes, bool writes) {
    const int64_t layers = (int64_t)sizes.size() - 1;
    if (layers < 1 || layers > kMostLayers) throw nb::value_error("there must be 1 to 16 layers.");
    for (int64_t size : sizes)
        if (size < 1 || size > INT32_MAX) throw nb::value_error("a layer needs at least one unit.");
    const int64_t L = in.shape("0.W", 3)[0];
    const int32_t* curve = in.readable<int32_t>("curve", {layers});
    const float* clip = in.readable<float>("clip", {layers, 4});
    for (int64_t l = 0; l < layers; l++) {
        LayeredLayer& f = job.layer[l];
        f.below = sizes[l];
        f.units = sizes[l + 1];
        f.wide = wide_of(f.units);
        f.turned = l > 0 && f.units < f.below;
        f.rows = f.turned ? f.units : f.below;
        f.stride = f.turned ? wide_of(f.below) : f.wide;
        auto floats = [&](const char* what, Sizes shape) {
            if (writes) return in.writable<float>(name(l, what).c_str(), shape);
            return const_cast<float*>(in.readable<float>(name(l, what).c_str(), shape));
        };
        f.W = floats("W", {L, f.rows, f.stride});
        f.c = floats("c", {L, f.wide});
        if (curve[l] < kClip || curve[l] > kTanh)
            throw nb::value_error("curve must name one of the activations 0, 1, 2.");
        f.activation = {curve[l], clip[4 * l], clip[4 * l + 1], clip[4 * l + 2], clip[4 * l + 3]};
    }
    job.lanes = L;
    job.layers = layers;
    job.dt = in.readable<float>("dt", {L});
    job.feedback = in.readable<float>("feedback", {L});
    return L;
}

// What the walk along the tape of a lane would find: nothing is written where it is wrong.
int32_t wrong_tape(const LayeredJob& job, int64_t lane) {
    const Tape& tape = job.tape;
    int64_t slot = job.slot[lane], left = job.left[lane];
    bool waits = job.known[lane];
    const int64_t over = tape.ticks[lane * tape.slots + slot] - left;
    if (job.steps[lane] < 0 || job.steps[lane] > over) return kBadTicks;
    for (int64_t tick = 0; tick < job.ticks; tick++) {
        if (left == 0) {
            if (++slot >= tape.slots) return kTapeTooShort;
            left = tape.ticks[lane * tape.slots + slot];
            if (left < 1) return kBadTicks;
            for (int64_t k = 0; k < job.replicas; k++)
                if (tape.row[(lane * tape.slots + slot) * job.replicas + k] >= job.rows)
                    return kBadRow;
        }
        const int64_t at = lane * tape.slots + slot;
        const int m = left == 1 ? 2 : left == tape.ticks[at] ? 0 : 1;
        if (tape.apply[3 * at + m]) {
            waits = false;
        } else if (job.memory == kWaiting && tape.weight[3 * at + m] != 0) {
            if (waits) return kTooManyTerms;
            waits = true;
        }
        left--;
    }
    return kFine;
}

LayeredJob job_of(Arrays& in, const Sizes& sizes, int64_t ticks, int memory, float momentum) {
    LayeredJob job{};
    const int64_t L = set_layers(in, job, sizes, true);
    const int64_t n = in.shape("0.s", 3)[1], inputs = sizes.front(), outputs = sizes.back();
    const int64_t wide = job.layer[0].wide;
    if (ticks < 0 || n < 1 || memory < kNothing || memory > kMean)
        throw nb::value_error(
            "ticks must not be negative, replicas at least 1, and memory one of 0, 1, 2, 3.");
    if (!(momentum >= 0 && momentum < 1))
        throw nb::value_error("momentum must be at least 0 and below 1.");
    if (momentum != 0 && memory == kMean)
        throw nb::value_error("a running mean (memory 3) goes without momentum.");
    job.ticks = ticks;
    job.replicas = n;
    job.memory = memory;
    job.momentum = momentum;
    for (int64_t l = 0; l < job.layers; l++) {
        LayeredLayer& f = job.layer[l];
        f.s = in.writable<float>(name(l, "s").c_str(), {L, n, f.wide});
        if (memory == kWaiting)
            f.s_kept = in.writable<float>(name(l, "s_kept").c_str(), {L, n, f.wide});
        if (momentum == 0 && memory != kMean) continue;
        f.m_W = in.writable<float>(name(l, "m_W").c_str(), {L, f.rows, f.stride});
        f.m_c = in.writable<float>(name(l, "m_c").c_str(), {L, f.wide});
    }
    job.x = in.writable<float>("x", {L, n, inputs});
    job.target = in.writable<float>("target", {L, n, wide_of(outputs)});
    job.tape = tape_of(in, L, n);
    set_place(in, job);
    job.known = in.writable<int32_t>("known", {L});
    if (memory == kWaiting) {
        job.x_kept = in.writable<float>("x_kept", {L, n, inputs});
        job.kept = in.writable<float>("kept", {L, n});
    }
    if (memory == kMean) job.rate = in.readable<float>("rate", {L});
    job.gathered = in.writable<float>("gathered", {L, n, wide});
    job.steps = in.writable<int32_t>("steps", {L});
    if (momentum != 0) {
        job.trace = in.writable<float>("trace", {L, n, wide});
        const int64_t gathered = L ? *std::max_element(job.steps, job.steps + L) : 0;
        job.deferred = counts(in, "deferred", {L, inputs}, ticks + gathered);
    }
    const int64_t slots = job.tape.slots;
    job.nudge = in.readable<float>("nudge", {L, slots, n});
    job.scale = in.readable<float>("scale", {L, slots, n});
    job.clamp = (const uint8_t*)in.readable<bool>("clamp", {L, slots});
    job.eta = in.readable<float>("eta", {L, job.layers});
    job.gain = in.readable<float>("gain", {L, job.layers});
    const int64_t own = in.shape("inputs", 3)[0];
    job.rows = in.shape("inputs", 3)[1];
    if (own != 1 && own != L)
        throw nb::value_error("inputs must have one leading entry, or one for each lane.");
    job.inputs = in.readable<float>("inputs", {own, job.rows, inputs});
    job.targets = in.readable<float>("targets", {own, job.rows, outputs});
    job.inputs_stride = own == 1 ? 0 : job.rows * inputs;
    job.targets_stride = own == 1 ? 0 : job.rows * outputs;
    for (int64_t lane = 0; lane < L; lane++) complain(wrong_tape(job, lane));
    return job;
}

const LayeredKernels& kernels(const std::string& isa) {
    return choose<LayeredKernels>(FLEXPHASE_TABLES(layered), isa);
}

void train(nb::dict dict, const Sizes& sizes, int64_t ticks, int memory, bool reset, float momentum,
           int threads, const std::string& isa) {
    Arrays in(dict);
    if (threads < 1) throw nb::value_error("threads must be at least 1.");
    LayeredJob job = job_of(in, sizes, ticks, memory, momentum);
    job.reset = reset;
    const LayeredKernels& k = kernels(isa);
    nb::gil_scoped_release release;
    parallel<float>(job.lanes, threads, k.train_scratch(job),
                    [&](int64_t lane, float* scratch) { k.train(job, lane, scratch); });
}

void settle(nb::dict dict, const Sizes& sizes, int memory, float momentum, const std::string& isa) {
    Arrays in(dict);
    const LayeredJob job = job_of(in, sizes, 0, memory, momentum);
    const LayeredKernels& k = kernels(isa);
    nb::gil_scoped_release release;
    parallel<float>(job.lanes, 1, k.train_scratch(job),
                    [&](int64_t lane, float* scratch) { k.settle(job, lane, scratch); });
}

void outputs(nb::dict dict, const Sizes& sizes, int64_t steps, int threads,
             const std::string& isa) {
    constexpr int64_t piece = 64;
    Arrays in(dict);
    LayeredOutputs job{};
    const int64_t L = set_layers(in, job, sizes, false);
    if (steps < 0 || threads < 1)
        throw nb::value_error("steps must not be negative, and threads at least 1.");
    job.steps = steps;
    job.rows = in.shape("inputs", 2)[0];
    job.inputs = in.readable<float>("inputs", {job.rows, sizes.front()});
    job.outputs = in.writable<float>("outputs", {L, job.rows, sizes.back()});
    const int64_t pieces = (job.rows + piece - 1) / piece;
    const LayeredKernels& k = kernels(isa);
    nb::gil_scoped_release release;
    parallel<float>(L * pieces, threads, k.outputs_scratch(job), [&](int64_t u, float* scratch) {
        const int64_t begin = u % pieces * piece;
        k.outputs(job, u / pieces, begin, std::min(job.rows, begin + piece), scratch);
    });
}

}  // namespace

void bind_layered(nb::module_& m) {
    using namespace nb::literals;
    m.def("layered", &train, "arrays"_a, "sizes"_a, "ticks"_a, "memory"_a, "reset"_a, "momentum"_a,
          "threads"_a, "isa"_a = "",
          "Move all lanes of a layered network on by some ticks, in place.");
    m.def("layered_settle", &settle, "arrays"_a, "sizes"_a, "memory"_a, "momentum"_a, "isa"_a = "",
          "Write what is gathered or deferred to the parameters of the first layer.");
    m.def("layered_outputs", &outputs, "arrays"_a, "sizes"_a, "steps"_a, "threads"_a, "isa"_a = "",
          "The output of the free network after some steps from rest, for each lane and input.");
}
