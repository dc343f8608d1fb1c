// A Bernoulli RBM, E(v, h) = -v W h - a v - c h, moved tick by tick as flexphase/core.py does it:
// float32 throughout, the same order of operations, so that the same phases and the same uniform
// numbers give the same states.

import { ESTIMATORS } from "./estimators.js";

const f = Math.fround;

/** Bars and Stripes: 2 * 2^side rows of side^2 units; all-off and all-on are there twice. */
export function barsAndStripes(side) {
  const rows = [];
  for (const bars of [true, false]) {
    for (let line = 0; line < 2 ** side; line++) {
      const on = (k) => (line >> (side - 1 - k)) & 1;
      const unit = (_, i) => on(bars ? i % side : Math.floor(i / side));
      rows.push(Uint8Array.from({ length: side * side }, unit));
    }
  }
  return rows;
}

/** Parameters: W is (visible, hidden), row after row. */
export class Params {
  constructor(visible, hidden) {
    this.visible = visible;
    this.hidden = hidden;
    this.W = new Float32Array(visible * hidden);
    this.a = new Float32Array(visible);
    this.c = new Float32Array(hidden);
  }

  static random(visible, hidden, noise, scale = 0.01) {
    const params = new Params(visible, hidden);
    params.W.forEach((_, k, W) => (W[k] = scale * noise.normal()));
    return params;
  }
}

/** Unit k is on if u[k] < sigmoid(drive): the drive is summed over the units that are on. */
function sampleHidden({ W, c, hidden }, v, h, u, drive) {
  drive.fill(0);
  for (let i = 0; i < v.length; i++) {
    if (v[i]) for (let j = 0, k = i * hidden; j < hidden; j++, k++) drive[j] += W[k];
  }
  for (let j = 0; j < hidden; j++) {
    h[j] = u[v.length + j] < f(1 / (1 + Math.exp(-f(drive[j] + c[j])))) ? 1 : 0;
  }
}

function sampleVisible({ W, a, hidden }, v, h, u) {
  for (let i = 0, k = 0; i < v.length; i++) {
    let drive = 0;
    for (let j = 0; j < hidden; j++, k++) if (h[j]) drive = f(drive + W[k]);
    v[i] = u[i] < f(1 / (1 + Math.exp(-f(drive + a[i])))) ? 1 : 0;
  }
}

/**
 * One lane of the loop in core.py: a machine, the phase it is in, its rule and its three clocks.
 * `feed.next(t)` gives the phase that begins after t ticks: {sign, prob, length, ticks, row}, where
 * row is a pattern or null;
 * `feed.uniforms(u)` fills u with the tick's uniform numbers, visible units first.
 */
export class Lane {
  constructor(params, v, h, feed, { rule, eta, visibleBias = false }) {
    const { visible, hidden } = params;
    Object.assign(this, { params, v, h, feed, visibleBias });
    this.memory = new Params(visible, hidden);
    this.u = new Float32Array(visible + hidden);
    this.drive = new Float32Array(hidden);
    this.phase = { sign: -1, prob: 1, length: 1, ticks: 0, left: 0, row: null };
    this.ticks = this.phases = this.updates = 0;
    this.eta = f(eta);
    this.teach(rule);
  }

  /** Take another rule, before a phase begins; what the old rule remembered is forgotten. */
  teach(rule) {
    this.estimator = ESTIMATORS[rule];
    for (const part of ["W", "a", "c"]) this.memory[part].fill(0);
  }

  /** Eq. 5: draw a phase if the last one is over, move the units, learn. */
  tick() {
    if (this.phase.left === 0) {
      const next = this.feed.next(this.ticks);
      this.phase = { ...next, left: next.ticks, row: next.row ?? this.phase.row };
    }
    const { phase, params, v, h, u } = this;
    this.feed.uniforms(u);
    if (phase.sign > 0) v.set(phase.row);
    else sampleVisible(params, v, h, u);
    sampleHidden(params, v, h, u, this.drive);
    this.learn(this.estimator.weigh(phase), this.estimator.applies(phase));
    phase.left -= 1;
    this.ticks += 1;
    if (phase.left === 0) this.phases += 1;
  }

  /** theta <- theta - eta * step, where a step is weight * dE/dtheta: -v h, -v and -h. */
  learn(weight, applies) {
    const { params, memory, estimator } = this;
    if (estimator.remembers) {
      if (weight) this.add(memory, -weight);
      if (applies) this.descend(params, memory);
    } else if (applies) {
      this.add(params, f(-this.eta * -weight));
    }
    if (applies) this.updates += 1;
  }

  /** Add `amount` wherever both units, or the unit of a bias, are on. */
  add({ W, a, c, hidden }, amount) {
    const { v, h } = this;
    for (let i = 0; i < v.length; i++) {
      if (!v[i]) continue;
      for (let j = 0, k = i * hidden; j < hidden; j++, k++) if (h[j]) W[k] += amount;
      if (this.visibleBias) a[i] += amount;
    }
    for (let j = 0; j < hidden; j++) if (h[j]) c[j] += amount;
  }

  descend(params, step) {
    for (const part of ["W", "a", "c"]) {
      const theta = params[part];
      const g = step[part];
      for (let k = 0; k < theta.length; k++) theta[k] = f(theta[k] + f(-this.eta * g[k]));
      g.fill(0);
    }
  }
}
