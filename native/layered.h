// What the kernels of layered networks are given: plain arrays, lanes first. A layer's units are
// padded with zeros to a multiple of 16 (`wide`), so that vectors fit. `replicas` copies of the
// state share the parameters of a lane.
#pragma once
#include "tape.h"

constexpr int kMostLayers = 16;

static inline int64_t wide_of(int64_t units) { return (units + 15) / 16 * 16; }

enum Curve : int32_t { kClip, kSigmoid, kTanh };

// An activation: clip(offset + slope x, low, high), or a smooth curve.
struct Activation {
    int32_t curve;
    float offset, slope, low, high;
};

// W joins the layer below to this one. The first is stored as (below, wide). Above, vectors run
// along the longer side: (below, wide) or, if `turned`, (units, wide of the layer below).
struct LayeredLayer {
    int64_t below, units, wide;
    int64_t rows, stride;  // of W as it is stored
    bool turned;
    float *W, *c;      // (lanes, rows, stride), (lanes, wide)
    float *m_W, *m_c;  // traces of momentum, or running means of the terms (kMean), or null
    float* s;          // (lanes, replicas, wide): the state
    float* s_kept;     // (lanes, replicas, wide): the state of the term that waits
    Activation activation;
};

// What an estimator makes of the terms: uses each at once or not at all; adds the one that waits
// for a step (two-term); subtracts that of the tick before (differential), or the running mean of
// all (baseline), which goes without momentum.
enum Memory : int32_t { kNothing, kWaiting, kChange, kMean };

struct LayeredJob {
    int64_t lanes, ticks, rows, layers, replicas;
    int32_t memory;
    bool reset;  // a phase begins at rest
    float momentum;
    LayeredLayer layer[kMostLayers];
    // the state, read and written
    float *x, *target;  // (lanes, replicas, inputs), (lanes, replicas, wide of the output)
    int32_t *left, *slot, *updates;
    int32_t* known;        // (lanes): kChange: has there been a tick? kWaiting: is there a term?
    float *x_kept, *kept;  // kWaiting: (lanes, replicas, inputs), and the factor (lanes, replicas)
    // Steps within a phase are gathered before they are written to the first layer's rows: sums
    // over the steps of its terms and of their traces, (lanes, replicas, wide), and their number.
    float *gathered, *trace;
    int32_t* steps;     // (lanes)
    int32_t* deferred;  // (lanes, inputs): steps that rows of silent inputs have to make up for
    // read only
    Tape tape;                   // its rows are (lanes, slots, replicas)
    const float *nudge, *scale;  // (lanes, slots, replicas): of the output, and of the local term
    const uint8_t* clamp;        // (lanes, slots): is the output held at the target?
    const float *eta, *gain;     // (lanes, layers): learning rate, and scale of the layer's term
    const float *dt, *feedback;  // (lanes)
    const float* rate;           // kMean: (lanes), share of the newest term in the mean
    const float *inputs, *targets;  // (1 or lanes, rows, inputs), (1 or lanes, rows, outputs)
    int64_t inputs_stride, targets_stride;  // from one lane's data to the next, 0 where shared
};

struct LayeredOutputs {
    int64_t lanes, rows, layers, steps;
    LayeredLayer layer[kMostLayers];  // W and c only
    const float *dt, *feedback;       // (lanes)
    const float* inputs;              // (rows, inputs)
    float* outputs;                   // (lanes, rows, outputs)
};

struct LayeredKernels {
    int64_t (*train_scratch)(const LayeredJob&);
    void (*train)(const LayeredJob&, int64_t lane, float* scratch);
    void (*settle)(const LayeredJob&, int64_t lane, float* scratch);
    int64_t (*outputs_scratch)(const LayeredOutputs&);
    void (*outputs)(const LayeredOutputs&, int64_t lane, int64_t begin, int64_t end,
                    float* scratch);
};
