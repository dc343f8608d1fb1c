// A machine in a worker of its own. It is sent {kind, ...} and answers with {kind, ...}:
//   start    {run, seed, settings}    random weights         -> state, measured
//   change   {settings}               other phases or rule
//   advance  {ticks, measure}         move on                -> state, and measured if asked
// Answers carry the number of the run that they belong to.

import { SlowWeights } from "./average.js";
import { measure } from "./likelihood.js";
import { barsAndStripes, Lane, Params } from "./model.js";
import { Noise } from "./noise.js";
import { Phases } from "./phases.js";

const SIDE = 4;
const HIDDEN = 16;
const SAMPLES = 16;
const DATA = barsAndStripes(SIDE);

/** Phases, patterns and noise from one seed. */
class OwnFeed {
  constructor(settings, seed) {
    this.noise = new Noise(seed);
    this.phases = new Phases(settings, this.noise);
    this.begun = [];
  }

  next(ticks) {
    const phase = this.phases.next();
    this.begun.push({ ...phase, start: ticks });
    const row = phase.sign > 0 ? DATA[Math.floor(DATA.length * this.noise.uniform())] : null;
    return { ...phase, row };
  }

  uniforms(u) {
    for (let k = 0; k < u.length; k++) u[k] = this.noise.uniform();
  }
}

export class Machine {
  constructor({ run, seed, settings }) {
    this.run = run;
    const noise = new Noise(3 * seed);
    const params = Params.random(SIDE ** 2, HIDDEN, noise);
    const unit = () => (noise.uniform() < 0.5 ? 1 : 0);
    const v = Float32Array.from({ length: SIDE ** 2 }, unit);
    const h = Float32Array.from({ length: HIDDEN }, unit);
    this.feed = new OwnFeed(settings, 3 * seed + 1);
    this.lane = new Lane(params, v, h, this.feed, settings);
    this.slow = new SlowWeights();
    this.samples = new Noise(3 * seed + 2);
    this.last = { positive: { v, h }, negative: { v, h } };
    this.settings = settings;
  }

  /** Another rule or process ends the present phase; another learning rate does not. */
  change({ settings }) {
    const { lane, feed } = this;
    const parts = ({ eta, ...rest }) => JSON.stringify(rest);
    if (parts(settings) !== parts(this.settings)) {
      feed.phases = new Phases(settings, feed.noise);
      lane.phase.left = 0;
      lane.teach(settings.rule);
    }
    lane.eta = Math.fround(settings.eta);
    this.settings = settings;
  }

  advance(ticks) {
    const { lane, slow, last } = this;
    for (let t = 0; t < ticks; t++) {
      lane.tick();
      slow.see(lane);
      if (lane.phase.left === 0 || t === ticks - 1) {
        last[lane.phase.sign > 0 ? "positive" : "negative"] = {
          v: lane.v.slice(),
          h: lane.h.slice(),
        };
      }
    }
  }

  state() {
    const { ticks, phases, updates, params } = this.lane;
    const begun = this.feed.begun;
    this.feed.begun = [];
    const units = this.last;
    return { kind: "state", run: this.run, ticks, phases, updates, units, W: params.W, begun };
  }

  measured() {
    const { lane, slow, samples } = this;
    const { ticks, phases, updates, params } = lane;
    const mean = slow.mean(lane);
    return {
      kind: "measured",
      run: this.run,
      clocks: { ticks, phases, updates },
      now: measure(params, DATA, samples, SAMPLES),
      slow: { ...measure(mean, DATA, samples, SAMPLES), W: mean.W },
    };
  }
}

let machine = null;

self.onmessage = ({ data }) => {
  if (data.kind === "start") machine = new Machine(data);
  if (data.kind === "change") return machine.change(data);
  if (data.kind === "advance") machine.advance(data.ticks);
  self.postMessage(machine.state());
  if (data.kind === "start" || data.measure) self.postMessage(machine.measured());
};
