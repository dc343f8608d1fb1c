// Slow weights: the mean of the parameters at 50 to 100 evenly spaced moments of the last half of
// what has run so far.

import { Params } from "./model.js";

const MOMENTS = 200;

export class SlowWeights {
  constructor() {
    this.spacing = 16;
    this.moments = [];
  }

  /** To be called after every tick. */
  see(lane) {
    if (lane.ticks % this.spacing) return;
    const { W, a, c } = lane.params;
    this.moments.push({ ticks: lane.ticks, W: W.slice(), a: a.slice(), c: c.slice() });
    if (this.moments.length < MOMENTS) return;
    this.spacing *= 2;
    this.moments = this.moments.filter((m) => m.ticks % this.spacing === 0);
  }

  /** The mean at this moment; before the first moment, the parameters themselves. */
  mean({ ticks, params }) {
    const late = this.moments.filter((m) => m.ticks > ticks / 2);
    const mean = new Params(params.visible, params.hidden);
    for (const part of ["W", "a", "c"]) {
      const all = late.length ? late.map((m) => m[part]) : [params[part]];
      mean[part].forEach((_, k, out) => {
        out[k] = all.reduce((sum, values) => sum + values[k], 0) / all.length;
      });
    }
    return mean;
  }
}
