// Layered networks with symmetric weights, one lane at a time. The local term of a phase is
// scale s_{l-1} s_l for every layer: equilibrium propagation, contrastive Hebbian learning.
#include "layered.h"

#include "layered_input.h"
#include "walk.h"

namespace FLEXPHASE_ISA {
namespace {

// Counts the memory that a layout takes.
struct Counter {
    int64_t count = 0;
    float* floats(int64_t n) {
        count += (n + 15) / 16 * 16;
        return nullptr;
    }
    int32_t* ints(int64_t n) { return (int32_t*)floats(n); }
    template <class T>
    T* many(int64_t n) {
        return (T*)floats(n * (int64_t)(sizeof(T) / sizeof(float)));
    }
};

// A part of a layer's step: times r^T c, where r and c are the states below and of the layer.
struct Outer {
    float times;
    const float *r, *c;
};

struct Lane {
    const LayeredJob& job;
    const int64_t lane, n;  // n replicas
    Net net;
    InputLayer first;
    float *target, *x_kept;     // (n, wide of the output), (n, padded inputs)
    float *factor, *kept;       // (n): of the present term and of the kept one
    float *a, *a_kept, *times;  // (n, wide of the first layer), and factors of a row
    Outer* outer;
    TapePhase phase{};
    int64_t now = 0, left, slot;
    int32_t error = kFine, updates = 0;
    bool known, same_x = true;  // is there a kept term, and does it have the present input?

    Lane(const LayeredJob& job, int64_t lane, float* scratch)
        : job(job), lane(lane), n(job.replicas) {
        Scratch room{scratch};
        lay_out(room);
    }
    explicit Lane(const LayeredJob& job) : job(job), lane(0), n(job.replicas) {}
    static int64_t scratch(const LayeredJob& job) {
        Counter room;
        Lane(job).lay_out(room);
        return room.count;
    }

    template <class Room>
    void lay_out(Room& room) {
        net.layers = job.layers;
        net.replicas = n;
        for (int64_t l = 0; l < job.layers; l++) {
            Layer& f = net.layer[l];
            f.set(job.layer[l], lane);
            f.d = room.floats(n * f.wide);
            if (job.memory == kChange) f.s_kept = room.floats(n * f.wide);
        }
        const Layer& bottom = net.layer[0];
        first.replicas = n;
        first.inputs = bottom.below;
        first.wide = bottom.wide;
        first.lay_out(room);
        x_kept = room.floats(n * first.padded());
        factor = room.floats(n);
        kept = room.floats(n);
        a = room.floats(n * bottom.wide);
        a_kept = room.floats(n * bottom.wide);
        times = room.floats(2 * n);
        outer = room.template many<Outer>(2 * n);
    }

    void read() {
        const int64_t inputs = first.inputs;
        left = job.left[lane];
        slot = job.slot[lane];
        known = job.known[lane];
        net.dt = job.dt[lane];
        net.feedback = job.feedback[lane];
        error = read_phase(job.tape, lane, slot, true, phase);
        for (int64_t l = 0; l < job.layers; l++) {
            Layer& f = net.layer[l];
            f.s = job.layer[l].s + lane * n * f.wide;
            if (job.memory == kWaiting) f.s_kept = job.layer[l].s_kept + lane * n * f.wide;
        }
        target = job.target + lane * n * net.top().wide;
        first.W = net.layer[0].W;
        first.c = net.layer[0].c;
        first.m_W = net.layer[0].m_W;
        first.m_c = net.layer[0].m_c;
        first.gathered = job.gathered + lane * n * first.wide;
        first.trace = job.trace ? job.trace + lane * n * first.wide : nullptr;
        first.deferred = job.deferred ? job.deferred + lane * inputs : nullptr;
        first.set(job.eta[lane * job.layers], job.momentum, job.steps[lane]);
        for (int64_t k = 0; k < n; k++) first.show(k, job.x + (lane * n + k) * inputs);
        if (job.memory == kWaiting) {
            copy(kept, job.kept + lane * n, n);
            clear(x_kept, n * first.padded());
            for (int64_t k = 0; k < n; k++)
                copy(x_kept + k * first.padded(), job.x_kept + (lane * n + k) * inputs, inputs);
        }
        if (job.memory == kChange) {
            copy(x_kept, first.x, n * first.padded());
            keep_states(1);
        }
    }
    void write() {
        const int64_t inputs = first.inputs;
        job.left[lane] = (int32_t)left;
        job.slot[lane] = (int32_t)slot;
        job.known[lane] = known;
        job.updates[lane] += updates;
        job.steps[lane] = first.steps;
        for (int64_t k = 0; k < n; k++) {
            copy(job.x + (lane * n + k) * inputs, first.x + k * first.padded(), inputs);
            if (job.memory == kWaiting)
                copy(job.x_kept + (lane * n + k) * inputs, x_kept + k * first.padded(), inputs);
        }
        if (job.memory == kWaiting) copy(job.kept + lane * n, kept, n);
    }

    bool phase_is_over() const { return left == 0; }
    OUT_OF_LINE void begin_phases() {
        slot++;
        error = read_phase(job.tape, lane, slot, true, phase);
        if (error) return;
        left = phase.ticks;
        for (int64_t k = 0; k < n; k++) {
            const int64_t row = job.tape.row[at_slot(k)];
            if (row < 0) continue;
            same_x = false;
            first.show(k, job.inputs + lane * job.inputs_stride + row * first.inputs);
            const int64_t outputs = net.top().units, wide = net.top().wide;
            const float* from = job.targets + lane * job.targets_stride + row * outputs;
            copy(target + k * wide, from, outputs);
            clear(target + k * wide + outputs, wide - outputs);
        }
        if (!job.reset) return;
        for (int64_t l = 0; l < job.layers; l++) clear(net.layer[l].s, n * net.layer[l].wide);
    }
    int64_t at_slot(int64_t k) const { return (lane * job.tape.slots + slot) * n + k; }

    void step() {
        first.receive(net.layer[0].d);
        net.receive();
        Layer& top = net.top();
        for (int64_t k = 0; k < n; k++) net.nudge(k, job.nudge[at_slot(k)], target + k * top.wide);
        net.relax();
        if (job.clamp[lane * job.tape.slots + slot]) copy(top.s, target, n * top.wide);
    }

    void learn() {
        const int m = moment(left, phase.ticks);
        const float weight = phase.weight[m];
        const bool apply = phase.apply[m] && (known || job.memory != kChange);
        if (apply) {
            const bool with_kept = known && job.memory != kNothing;
            const float own = job.memory == kMean ? 1 : weight;  // the mean is weighted as well
            for (int64_t k = 0; k < n; k++) {
                factor[k] = own * job.scale[at_slot(k)] / (float)n;
                if (job.memory == kChange) kept[k] *= -weight;
            }
            if (job.memory == kWaiting) same_x = has_same_x();
            if (job.memory == kMean)
                optimise_centred(weight);
            else if (weight != 0 || with_kept || job.momentum != 0)
                optimise(with_kept);
            updates++;
        }
        if (job.memory == kWaiting) {
            if (apply) {
                known = false;
            } else if (weight != 0) {
                keep_states(weight);
                copy(x_kept, first.x, n * first.padded());
                known = true;
            }
        }
        if (job.memory == kChange) {
            keep_states(1);
            if (!same_x) copy(x_kept, first.x, n * first.padded());
            same_x = true;
            known = true;
        }
    }
    void keep_states(float weight) {
        for (int64_t l = 0; l < job.layers; l++)
            copy(net.layer[l].s_kept, net.layer[l].s, n * net.layer[l].wide);
        for (int64_t k = 0; k < n; k++) kept[k] = weight * job.scale[at_slot(k)] / (float)n;
    }
    bool has_same_x() const {
        return !__builtin_memcmp(x_kept, first.x, (size_t)(n * first.padded()) * sizeof(float));
    }

    // A step of the optimiser with the present term and, if asked, the kept one.
    void optimise(bool with_kept) {
        const float gain = job.gain[lane * job.layers];
        scaled(a, factor, gain, net.layer[0].s);
        if (with_kept) scaled(a_kept, kept, gain, net.layer[0].s_kept);
        if (with_kept && !same_x) {
            first.step_now(a, x_kept, a_kept);
        } else {
            for (int64_t j = 0; with_kept && j < n * first.wide; j += N)
                store(a + j, load(a + j) + load(a_kept + j));
            first.gather(a);
        }
        for (int64_t l = 1; l < job.layers; l++) step_layer(l, with_kept);
    }
    // to_k = factor_k gain s_k
    void scaled(float* to, const float* factors, float gain, const float* s) const {
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = k * first.wide; j < (k + 1) * first.wide; j += N)
                store(to + j, all(factors[k] * gain) * load(s + j));
    }

    OUT_OF_LINE void step_layer(int64_t l, bool with_kept) {
        const Layer &up = net.layer[l], &down = net.layer[l - 1];
        const float eta = job.eta[lane * job.layers + l], gain = job.gain[lane * job.layers + l];
        int64_t count = 0;
        for (int64_t k = 0; k < n; k++) {
            outer[count++] = {factor[k] * gain, down.s + k * down.wide, up.s + k * up.wide};
            if (!with_kept) continue;
            const float *below = down.s_kept + k * down.wide, *above = up.s_kept + k * up.wide;
            outer[count++] = {kept[k] * gain, below, above};
        }
        // The bias, whose state below is 1; then the rows.
        const float rate = up.m_W ? 1 : -eta;
        for (int64_t f = 0; f < count; f++) {
            outer[f].times *= rate;
            times[f] = outer[f].times;
        }
        step_row<0>(up.c, up.m_c, up.wide, eta, count);
        if (up.turned) turn(count);
        if (count == 1)
            step_rows<1>(up, eta, 1);
        else if (count == 2)
            step_rows<2>(up, eta, 2);
        else
            step_rows<0>(up, eta, count);
    }
    void turn(int64_t count) {
        for (int64_t f = 0; f < count; f++) {
            const float* swap = outer[f].r;
            outer[f].r = outer[f].c;
            outer[f].c = swap;
        }
    }
    template <int C>
    void step_rows(const Layer& up, float eta, int64_t count) {
        for (int64_t r = 0; r < up.rows; r++) {
            for (int64_t f = 0; f < count; f++) times[f] = outer[f].times * outer[f].r[r];
            float* m = up.m_W ? up.m_W + r * up.stride : nullptr;
            step_row<C>(up.W + r * up.stride, m, up.stride, eta, count);
        }
    }
    // One row: m = mu m + sum of times c, w -= eta m; or, without momentum, w += sum of times c. C
    // is the number of terms, if fixed.
    template <int C>
    void step_row(float* w, float* m, int64_t wide, float eta, int64_t count) const {
        F fixed[C ? C : 1];
        for (int f = 0; f < C; f++) fixed[f] = all(times[f]);
        for (int64_t j = 0; j < wide; j += N) {
            F sum = m ? all(job.momentum) * load(m + j) : load(w + j);
            if (C)
                for (int f = 0; f < C; f++) sum = madd(fixed[f], load(outer[f].c + j), sum);
            else
                for (int64_t f = 0; f < count; f++)
                    sum = madd(all(times[f]), load(outer[f].c + j), sum);
            store(m ? m + j : w + j, sum);
            if (m) store(w + j, madd(all(-eta), sum, load(w + j)));
        }
    }

    // A step with the present term less the running mean, which moves every weight.
    void optimise_centred(float weight) {
        for (int64_t l = 0; l < job.layers; l++) centre_layer(l, weight);
        first.fresh = false;
    }
    OUT_OF_LINE void centre_layer(int64_t l, float weight) {
        const Layer& up = net.layer[l];
        const float gain = job.gain[lane * job.layers + l];
        const float down = -job.eta[lane * job.layers + l] * weight;
        const float* below = l ? net.layer[l - 1].s : first.x;
        const int64_t stride = l ? net.layer[l - 1].wide : first.padded();
        for (int64_t k = 0; k < n; k++) {
            outer[k] = {factor[k] * gain, below + k * stride, up.s + k * up.wide};
            times[k] = outer[k].times;
        }
        centre_row(up.c, up.m_c, up.wide, down);
        if (up.turned) turn(n);
        for (int64_t r = 0; r < up.rows; r++) {
            for (int64_t k = 0; k < n; k++) times[k] = outer[k].times * outer[k].r[r];
            centre_row(up.W + r * up.stride, up.m_W + r * up.stride, up.stride, down);
        }
    }
    // One row, with d = sum of times c - m: w += down d, m += rate d.
    void centre_row(float* w, float* m, int64_t wide, float down) const {
        const F rate = all(job.rate[lane]), step = all(down);
        for (int64_t j = 0; j < wide; j += N) {
            const F mean = load(m + j);
            F d = -mean;
            for (int64_t k = 0; k < n; k++) d = madd(all(times[k]), load(outer[k].c + j), d);
            store(w + j, madd(step, d, load(w + j)));
            store(m + j, madd(rate, d, mean));
        }
    }

    void end_tick() {
        left--;
        if (left == 0) first.write_gathered();
    }
};

void train(const LayeredJob& job, int64_t lane, float* scratch) {
    const FlushToZero flush;
    Lane walk(job, lane, scratch);
    run(walk);
}

// Leaves nothing gathered or deferred in the first layer: its parameters as they are.
void settle(const LayeredJob& job, int64_t lane, float* scratch) {
    const FlushToZero flush;
    Lane walk(job, lane, scratch);
    walk.read();
    walk.first.write_gathered();
    for (int64_t i = 0; job.momentum != 0 && i < walk.first.inputs; i++) walk.first.catch_up(i);
    job.steps[lane] = 0;
}

// The outputs of free networks, for some inputs at a time: the states relax from rest.
struct Free {
    static constexpr int64_t kAtOnce = 8;
    const LayeredOutputs& job;
    Net net;
    Active active;
    float* drive;

    template <class Room>
    void lay_out(Room& room, int64_t lane) {
        net.layers = job.layers;
        for (int64_t l = 0; l < job.layers; l++) {
            Layer& f = net.layer[l];
            f.set(job.layer[l], lane);
            f.d = room.floats(kAtOnce * f.wide);
            f.s = room.floats(kAtOnce * f.wide);
        }
        const int64_t inputs = net.layer[0].below;
        active.index = room.ints(inputs + 1);
        active.value = room.floats(inputs + 1);
        drive = room.floats(kAtOnce * net.layer[0].wide);
    }

    void run(int64_t lane, int64_t begin, int64_t end) {
        const Layer &bottom = net.layer[0], &top = net.top();
        net.dt = job.dt[lane];
        net.feedback = job.feedback[lane];
        net.replicas = end - begin;
        for (int64_t l = 0; l < job.layers; l++) clear(net.layer[l].s, kAtOnce * net.layer[l].wide);
        for (int64_t r = begin; r < end; r++) {
            active.find(job.inputs + r * bottom.below, bottom.below);
            product(active, bottom.W, bottom.wide, bottom.c, drive + (r - begin) * bottom.wide);
        }
        for (int64_t t = 0; t < job.steps; t++) {
            copy(bottom.d, drive, net.replicas * bottom.wide);
            net.receive();
            if (!net.relax()) break;  // at rest: all later steps would be the same
        }
        for (int64_t r = begin; r < end; r++)
            copy(job.outputs + (lane * job.rows + r) * top.units, top.s + (r - begin) * top.wide,
                 top.units);
    }
};

int64_t outputs_scratch(const LayeredOutputs& job) {
    Counter room;
    Free{job}.lay_out(room, 0);
    return room.count;
}

void outputs(const LayeredOutputs& job, int64_t lane, int64_t begin, int64_t end, float* scratch) {
    const FlushToZero flush;
    Scratch room{scratch};
    Free free{job};
    free.lay_out(room, lane);
    for (int64_t r = begin; r < end; r += Free::kAtOnce)
        free.run(lane, r, r + Free::kAtOnce < end ? r + Free::kAtOnce : end);
}

}  // namespace

extern const LayeredKernels layered;
const LayeredKernels layered{&Lane::scratch, &train, &settle, &outputs_scratch, &outputs};

}  // namespace FLEXPHASE_ISA
