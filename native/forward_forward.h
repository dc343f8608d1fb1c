// What the Forward-Forward kernels are given: plain arrays, lanes first.
#pragma once
#include <cstdint>

constexpr int kMaxLayers = 16;

struct FFLayer {
    int64_t inputs, units;
    float *W, *c;                      // (lanes, inputs, units), (lanes, units)
    float *mu_W, *mu_c, *nu_W, *nu_c;  // Adam's two moments, of the same shapes
    float* h;                          // (lanes, units): the responses at the last tick
};

struct FFJob {
    int64_t lanes, ticks, rows, classes, layers;
    bool adam;
    FFLayer layer[kMaxLayers];
    const float* images;         // (1 or lanes, rows, pixels)
    int64_t images_stride;       // floats from one lane's images to the next, 0 where shared
    const int32_t *row, *label;  // (lanes, ticks): the image of each tick and the label with it
    const float *sign, *weight;  // (lanes, ticks): of the local term
    const uint8_t* apply;        // (lanes, ticks): does the optimiser step?
    const float *eta, *theta;    // (lanes)
    int32_t* count;              // (lanes): Adam's steps so far
};

struct FFScores {
    int64_t lanes, rows, classes, layers;
    FFLayer layer[kMaxLayers];  // W and c only
    const float* images;        // (rows, pixels)
    float* scores;              // (lanes, rows, classes)
};

struct FFKernels {
    int64_t (*train_scratch)(const FFJob&);
    int32_t (*train)(const FFJob&, int64_t lane, float* scratch);  // an Error of tape.h
    int64_t (*scores_scratch)(const FFScores&);
    int64_t (*packed_size)(const FFScores&);
    void (*pack)(const FFScores&, int64_t lane, float* packed);
    void (*scores)(const FFScores&, int64_t lane, int64_t begin, int64_t end, const float* packed,
                   float* scratch);
};
