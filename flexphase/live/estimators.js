// Eq. 5, line 4: the weight of the local term at a tick, and whether the parameters change now.
// The same as flexphase/estimators.py, in float32.

const f = Math.fround;

/**
 * A phase is {sign, prob, length, ticks, left}: prob is the long-run share of phases of this sign,
 * length their mean length, left the ticks still to go, the present one included.
 */
export const ESTIMATORS = {
  // Eq. 1: g_plus is remembered until the negative phase ends.
  "two-term": {
    remembers: true,
    weigh: (p) => (p.left === 1 ? p.sign : 0),
    applies: (p) => p.left === 1 && p.sign < 0,
  },
  // Eq. 2: one term, over the probability that it was chosen.
  isd: {
    remembers: false,
    weigh: (p) => (p.left === 1 ? f(p.sign / p.prob) : 0),
    applies: (p) => p.left === 1,
  },
  // Eqs. 4 and 5: eta / tau at every tick.
  aol: {
    remembers: false,
    weigh: (p) => f(p.sign / f(p.prob * p.length)),
    applies: () => true,
  },
};
