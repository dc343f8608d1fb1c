// What the synapses of a lane make of a change: the part of flexphase/hardware/device.py that is
// needed at full speed. Pointers are null where there is no such limit.
#pragma once
#include <cstdint>

struct DeviceJob {
    bool on;          // false: parameters are plain numbers
    bool stochastic;  // how a change becomes a whole number of steps; else to the nearest
    bool levels;      // steps lie between levels, else they are pulses
    const float *range, *step, *noise, *proportional, *asymmetry;  // (lanes)
    uint32_t* rng;  // (lanes, 4), or (lanes, 4, 16) for wide models; null where nothing is drawn
    // For tests, in the place of our own: (ticks, lanes, 3, parameters), uniform numbers for the
    // rounding, then the bells of the proportional and of the additive noise.
    const float* given;
    int64_t parameters;
};
