// Phase processes: a selection (which sign comes next?) times a duration (how long is it?). The same
// laws as in flexphase/phases.

import { LAWS } from "./lengths.js";

/**
 * A selection made from the settings (and from noise, if its memory begins at random): b is the
 * long-run share of positive phases, `sign(u, n)` the sign of phase n given a uniform u. One that
 * has `lasted(sign, share)` learns how long each phase is, over the mean length. What it remembers
 * between phases is its own.
 */
export const SELECTIONS = {
  alternating: () => ({ b: 0.5, sign: (_, n) => (n % 2 ? -1 : 1) }),

  bernoulli: ({ b }) => ({ b, sign: (u) => (u < b ? 1 : -1) }),

  /** The next phase has the sign of the last one with a probability that depends on that sign. */
  markov: ({ stayPositive, stayNegative }, noise) => {
    const b = (1 - stayNegative) / (2 - stayPositive - stayNegative);
    let last = noise.uniform() < b ? 1 : -1;
    const stay = () => (last > 0 ? stayPositive : stayNegative);
    return { b, sign: (u) => (last = u < stay() ? last : -last) };
  },

  /** A positive and a negative phase in random order, then the next pair. */
  pairs: () => {
    let last = 1;
    const first = (u) => (u < 0.5 ? 1 : -1);
    return { b: 0.5, sign: (u, n) => (last = n % 2 ? -last : first(u)) };
  },

  /**
   * P(positive) = sigmoid(logit(b) - kappa D), where a positive phase adds (1 - b) T / tau to D and
   * a negative one takes away b T / tau.
   */
  homeostatic: ({ b, kappa }) => {
    let imbalance = 0;
    const chance = () => 1 / (1 + ((1 - b) / b) * Math.exp(kappa * imbalance));
    const lasted = (sign, share) => (imbalance += share * (sign > 0 ? 1 - b : -b));
    return { b, sign: (u) => (u < chance() ? 1 : -1), lasted };
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
function matched({ tau }, noise) {
  let last = geometricLength(tau, noise.uniform());
  return (_, sign) => {
    if (sign > 0) last = geometricLength(tau, noise.uniform());
    return last;
  };
}

/** A duration made from the settings: (noise, sign) -> ticks, with mean tau. */
function duration(settings, noise) {
  const { tau } = settings;
  switch (settings.duration) {
    case "fixed":
      return () => tau;
    case "geometric":
      return (noise) => geometricLength(tau, noise.uniform());
    case "matched":
      return matched(settings, noise);
    default:
      return onward(LAWS[settings.duration], settings);
  }
}

/** An endless series of phases {sign, prob, length, ticks}. */
export class Phases {
  constructor(settings, noise) {
    this.selection = SELECTIONS[settings.selection](settings, noise);
    this.duration = duration(settings, noise);
    this.length = settings.tau;
    this.noise = noise;
    this.n = 0;
  }

  next() {
    const { b } = this.selection;
    const sign = this.selection.sign(this.noise.uniform(), this.n++);
    const ticks = this.duration(this.noise, sign);
    this.selection.lasted?.(sign, ticks / this.length);
    return { sign, prob: sign > 0 ? b : 1 - b, length: this.length, ticks };
  }
}
