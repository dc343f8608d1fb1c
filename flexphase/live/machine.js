// One machine on the page: its worker, its settings, its pictures and its numbers.

import { Controls } from "./controls.js";
import { barsAndStripes } from "./model.js";
import { numbered } from "./likelihood.js";
import { paintFields, paintRibbon, paintSamples, paintUnits, Picture } from "./pictures.js";
import { command, described, NAMES } from "./settings.js";

const KNOWN = new Set(barsAndStripes(4).map(numbered));
const UNITS_EVERY = 120; // ms: fast enough to look alive, slow enough to be read
const count = new Intl.NumberFormat("en");
const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

export class MachineView {
  constructor(root, name, page) {
    const card = document.getElementById("machine").content.cloneNode(true).firstElementChild;
    this.find = (selector) => card.querySelector(selector);
    Object.assign(this, { name, page, card, ticks: 0, ribbon: [], run: 0, pending: 0 });
    this.worker = new Worker(workerUrl());
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.controls = new Controls(this.find("fieldset"), name, (settings) => this.change(settings));
    this.label(root);
    this.pictures();
  }

  label(root) {
    const { card, name, find } = this;
    card.className = `machine ${name.toLowerCase()}`;
    card.setAttribute("aria-label", `Machine ${name}`);
    find(".badge").textContent = name;
    find("caption").textContent = `What machine ${name} has learnt`;
    find("legend").textContent = `Settings of machine ${name}`;
    find(".ribbon").setAttribute("aria-label", `The latest phases of machine ${name}`);
    for (const which of ["now", "slow"]) {
      const of = `${which === "now" ? "the weights now" : "the slow weights"} of machine ${name}`;
      find(`.${which}-fields`).setAttribute("aria-label", `Fields of the hidden units, ${of}`);
      find(`.${which}-samples`).setAttribute("aria-label", `Samples from ${of}`);
    }
    find("details").open = matchMedia("(min-width: 60rem)").matches;
    root.append(card);
  }

  pictures() {
    const picture = (selector, paint) => new Picture(this.find(selector), paint);
    this.ribbonPicture = picture(".ribbon", paintRibbon);
    this.unitPictures = {};
    for (const phase of ["positive", "negative"]) {
      this.unitPictures[phase] = ["v", "h"].map((layer) =>
        picture(`.${phase}-${layer}`, paintUnits),
      );
    }
    this.fields = {
      now: picture(".now-fields", paintFields),
      slow: picture(".slow-fields", paintFields),
    };
    this.samples = {
      now: picture(".now-samples", paintSamples),
      slow: picture(".slow-samples", paintSamples),
    };
  }

  set(settings) {
    this.controls.set(settings);
    this.describe();
  }

  describe() {
    const { settings } = this.controls;
    this.find(".name").textContent = NAMES[settings.rule];
    this.find(".words").textContent = described(settings);
    this.find(".command").textContent = command(settings);
  }

  change(settings) {
    this.describe();
    this.worker.postMessage({ kind: "change", settings });
  }

  start(seed) {
    this.ribbon = [];
    this.run += 1;
    this.pending += 1;
    const { settings } = this.controls;
    this.worker.postMessage({ kind: "start", run: this.run, seed, settings });
  }

  advance(ticks, measure) {
    this.pending += 1;
    this.worker.postMessage({ kind: "advance", ticks, measure });
  }

  /** Answers to what was asked before the machine was started over are dropped. */
  hear(answer) {
    if (answer.kind === "state") this.pending -= 1;
    if (answer.run !== this.run) return;
    if (answer.kind === "state") this.take(answer);
    else this.learnt(answer);
  }

  /** The worker has moved on. */
  take(state) {
    this.ticks = state.ticks;
    this.state = state;
    for (const phase of state.begun) {
      const last = this.ribbon.at(-1);
      if (last) last.end = phase.start;
      this.ribbon.push({ ...phase, end: phase.start + phase.ticks });
    }
    this.fresh = true;
  }

  learnt(result) {
    this.result = result;
    for (const which of ["now", "slow"]) {
      const { nll, share, samples } = result[which];
      this.find(`.${which}-nll`).textContent = nll.toFixed(1);
      this.find(`.${which}-share`).textContent = percent(share);
      this.samples[which].show({ samples, known: KNOWN });
    }
    this.fields.slow.show(result.slow);
    const { phases, updates } = result.clocks;
    this.find(".counts").textContent =
      `${count.format(phases)} phases, ${count.format(updates)} updates`;
    this.page.measured(this.name, result);
  }

  /** Draw what is new; units no faster than can be read. */
  draw(now, speed, calm) {
    if (!this.fresh) return;
    const readable = now - (this.drawnAt ?? -Infinity) > (calm ? 1000 : UNITS_EVERY);
    if (readable) {
      this.drawnAt = now;
      this.drawUnits();
      this.fields.now.show(this.state);
    }
    const span = this.span(speed);
    if (readable || (!calm && speed < 4 * span)) this.drawRibbon(span);
    this.fresh = false;
  }

  drawUnits() {
    const { units } = this.state;
    for (const [phase, pictures] of Object.entries(this.unitPictures)) {
      const sign = phase === "positive" ? 1 : -1;
      pictures[0].show({ values: units[phase].v, sign });
      pictures[1].show({ values: units[phase].h, sign });
    }
  }

  /** Ticks on the ribbon: two seconds, but no fewer than 20 phases and no more than can be seen. */
  span(speed) {
    const { tau } = this.controls.settings;
    const most = Math.max(this.find(".ribbon").clientWidth / 7, 24);
    return Math.min(Math.max(2 * speed, 20 * tau), most * tau);
  }

  drawRibbon(span) {
    const { rule } = this.controls.settings;
    const [from, to] = [this.ticks - span, this.ticks];
    while (this.ribbon.length && this.ribbon[0].end < from) this.ribbon.shift();
    this.ribbonPicture.show({ phases: this.ribbon, rule, from, to });
  }

  summary() {
    if (!this.result) return "";
    const { now, slow } = this.result;
    const [a, b] = [now, slow].map(({ nll }) => nll.toFixed(0));
    return `Machine ${this.name}: ${a} nats, slow weights ${b} nats.`;
  }
}

/** The worker's script, which is in the page, as an address. */
function workerUrl() {
  const script = document.getElementById("worker").textContent;
  return URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
}
