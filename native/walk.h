// The walk along the tape, shared by all kernels: what the tape says of a phase, and the loop over
// the ticks. The functions are in the namespace of the instruction set because they are compiled
// once for each.
#pragma once
#include "simd.h"
#include "tape.h"

namespace FLEXPHASE_ISA {
namespace {

// Pieces of the scratch memory, aligned to 64 bytes.
struct Scratch {
    float* at;
    float* floats(int64_t n) {
        float* p = at;
        at += (n + 15) / 16 * 16;
        return p;
    }
    int32_t* ints(int64_t n) { return (int32_t*)floats(n); }
    template <class T>
    T* many(int64_t n) {
        return (T*)floats(n * (int64_t)(sizeof(T) / sizeof(float)));
    }
};

struct TapePhase {
    int32_t ticks;
    bool positive;
    float weight[3];  // at the first tick, between, and at the last; see `moment`
    bool apply[3];
};

// Which of the three weights counts with that many ticks left. A phase of one tick is at its last.
INLINE int moment(int64_t left, int64_t ticks) { return left == 1 ? 2 : left == ticks ? 0 : 1; }

// What the tape says of the phase in that slot. Where nothing is remembered, a term that has a
// weight must be used at once.
INLINE Error read_phase(const Tape& tape, int64_t lane, int64_t slot, bool remember,
                        TapePhase& to) {
    if (slot < 0 || slot >= tape.slots) return kTapeTooShort;
    const int64_t at = lane * tape.slots + slot;
    to.ticks = tape.ticks[at];
    to.positive = tape.sign[at] > 0;
    for (int m = 0; m < 3; m++) {
        to.weight[m] = tape.weight[3 * at + m];
        to.apply[m] = tape.apply[3 * at + m];
        if (!remember && to.weight[m] != 0 && !to.apply[m]) return kNotLocal;
    }
    return kFine;
}

// The same for a phase that begins, with the row of its stimulus (below 0: keep the present one).
INLINE Error begin_phase(const Tape& tape, int64_t lane, int64_t slot, bool remember, int64_t rows,
                         TapePhase& to, int64_t& row) {
    if (const Error error = read_phase(tape, lane, slot, remember, to)) return error;
    if (to.ticks < 1) return kBadTicks;
    row = tape.row[lane * tape.slots + slot];
    return row < rows ? kFine : kBadRow;
}

// All ticks of a job. Nothing is written where the tape has an error.
template <class Walk>
INLINE int32_t run(Walk& walk) {
    walk.read();
    for (walk.now = 0; walk.now < walk.job.ticks && !walk.error; walk.now++) {
        if (walk.phase_is_over()) walk.begin_phases();
        if (walk.error) break;
        walk.step();
        walk.learn();
        walk.end_tick();
    }
    if (!walk.error) walk.write();
    return walk.error;
}

}  // namespace
}  // namespace FLEXPHASE_ISA
