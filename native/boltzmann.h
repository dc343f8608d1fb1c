// What the Boltzmann kernels are given: plain arrays, lanes first.
#pragma once
#include "device.h"
#include "tape.h"

enum NegativeStart : int32_t { kCarry, kData, kPersistent, kRandom };

struct RbmJob {
    int64_t lanes, visible, hidden, ticks, rows;
    bool visible_bias;
    int32_t negative_start;
    bool remember;  // some tick adds to the accumulator without a step of the optimiser
    // the state, read and written
    float *W, *a, *c, *acc_W, *acc_a, *acc_c;
    float *v, *h, *chain_v, *chain_h, *x;
    int32_t *left, *slot, *updates;
    uint32_t* rng;  // (lanes, 4), or (lanes, 4, 16) for wide models
    // Wide models only: the parameters where a clamped phase began, c + v W there, and what was
    // gathered since, (lanes, hidden + 1).
    float *base_W, *base_a, *base_c, *drive, *gathered;
    // read only
    Tape tape;
    const float* eta;      // (lanes)
    const uint32_t* data;  // (1 or lanes, rows, words): bits
    int64_t data_stride;   // words from one lane's data to the next, 0 where shared
    // Boltzmann machines only: the order of the units in a sweep, and to whom unit i is joined:
    // joined[first[i]] .. joined[first[i + 1] - 1].
    const int32_t *order, *first, *joined;
    // and where the same pair is listed the other way round
    const int32_t* mirror;
    DeviceJob device;
    const float* noise;  // (ticks, lanes, visible + hidden), or null: draw
};

static inline int64_t words(int64_t units) { return (units + 31) / 32; }

// Lanes begin, begin + 1, ... (at most `width` of them) with `scratch` floats, aligned to 64 bytes,
// to work in.
struct SmallKernel {
    int width;
    int64_t (*scratch)(const RbmJob&);
    int32_t (*run)(const RbmJob&, int64_t begin, int64_t count, float* scratch);
};

struct WideKernel {
    int64_t (*scratch)(const RbmJob&);
    int32_t (*run)(const RbmJob&, int64_t lane, float* scratch);
};

struct BoltzmannKernels {
    const WideKernel* wide;
    const SmallKernel* machine;  // three, like small
    SmallKernel small[3];        // widths 4, 8, 16, as far as the registers go; the rest is empty
};
