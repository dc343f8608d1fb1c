// The tape of phases that a kernel is given, and what can be wrong with it.
#pragma once
#include <cstdint>

// A lane's tape is a list of phases; slot 0 is the phase that the lane is in.
struct Tape {
    int64_t slots;         // phases per lane
    const int32_t* ticks;  // (lanes, slots)
    const int8_t* sign;    // (lanes, slots)
    const int32_t* row;    // (lanes, slots): the stimulus; below 0: keep the present one
    const float* weight;   // (lanes, slots, 3): weight of the local term at the first tick,
                           // between, and at the last
    const uint8_t* apply;  // (lanes, slots, 3): does the optimiser step?
    const float* enter;    // (lanes, slots, visible + hidden): noise for the start of a phase, or
                           // null: draw it
};

enum Error : int32_t { kFine, kTapeTooShort, kBadTicks, kBadRow, kNotLocal, kTooManyTerms };
