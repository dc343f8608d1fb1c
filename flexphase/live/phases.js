// Phase processes: a selection (which sign comes next?) times a duration (how long is it?).

import { LAWS } from "./lengths.js";

/**
 * A selection made from the settings: b is the long-run share of positive phases, `sign(u, n)` the
 * sign of phase n given a uniform u. What it remembers between phases is its own.
 */
export const SELECTIONS = {
  alternating: () => ({ b: 0.5, sign: (_, n) => (n % 2 ? -1 : 1) }),

  bernoulli: ({ b }) => ({ b, sign: (u) => (u < b ? 1 : -1) }),

  /** The next phase has the sign of the last one with a probability that depends on that sign. */
  markov: ({ stayPositive, stayNegative }) => {
    const b = (1 - stayNegative) / (2 - stayPositive - stayNegative);
    let last = 0;
    const positive = () => (last === 0 ? b : last > 0 ? stayPositive : 1 - stayNegative);
    return { b, sign: (u) => (last = u < positive() ? 1 : -1) };
  },

  /** A positive and a negative phase in random order, then the next pair. */
  pairs: () => {
    let open = 0;
    const sign = (u) => {
      const drawn = open ? -open : u < 0.5 ? 1 : -1;
      open = open ? 0 : drawn;
      return drawn;
    };
    return { b: 0.5, sign };
  },

  /** P(positive) = sigmoid(logit(b) - kappa d), d: by how much positive phases are ahead of b. */
  homeostatic: ({ b, kappa }) => {
    let ahead = 0;
    const sign = (u) => {
      const odds = (b / (1 - b)) * Math.exp(-kappa * ahead);
      const drawn = u < odds / (1 + odds) ? 1 : -1;
      ahead += drawn > 0 ? 1 - b : -b;
      return drawn;
    };
    return { b, sign };
  },

  /** n phases of a sign in a row. */
  blocks: ({ blockPositive, blockNegative }) => {
    const both = blockPositive + blockNegative;
    return { b: blockPositive / both, sign: (_, n) => (n % both < blockPositive ? 1 : -1) };
  },
};

/** A geometric length by the inverse of its distribution function: mean tau, never below 1. */
function geometricLength(tau, u) {
  return tau === 1 ? 1 : Math.floor(Math.log1p(-u) / Math.log1p(-1 / tau)) + 1;
}

/**
 * 1 + a law of mean tau - 1 and standard deviation cv * tau, rounded up or down at random so that
 * the mean length is tau.
 */
function onward(law, { tau, cv }) {
  if (tau === 1) return () => 1;
  const draw = law((cv * tau) / (tau - 1));
  return (noise) => 1 + Math.floor((tau - 1) * draw(noise) + noise.uniform());
}

/** Geometric; a negative phase lasts as long as the last positive one. */
function matched({ tau }) {
  let last = 0;
  return (noise, sign) => {
    const ticks = sign < 0 && last ? last : geometricLength(tau, noise.uniform());
    if (sign > 0) last = ticks;
    return ticks;
  };
}

/** A duration made from the settings: (noise, sign) -> ticks, with mean tau. */
function duration(settings) {
  const { tau } = settings;
  switch (settings.duration) {
    case "fixed":
      return () => tau;
    case "geometric":
      return (noise) => geometricLength(tau, noise.uniform());
    case "matched":
      return matched(settings);
    default:
      return onward(LAWS[settings.duration], settings);
  }
}

/** An endless series of phases {sign, prob, length, ticks}. */
export class Phases {
  constructor(settings, noise) {
    this.selection = SELECTIONS[settings.selection](settings);
    this.duration = duration(settings);
    this.length = settings.tau;
    this.noise = noise;
    this.n = 0;
  }

  next() {
    const { b } = this.selection;
    const sign = this.selection.sign(this.noise.uniform(), this.n++);
    const ticks = this.duration(this.noise, sign);
    return { sign, prob: sign > 0 ? b : 1 - b, length: this.length, ticks };
  }
}
