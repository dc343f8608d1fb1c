// The page: two machines in two workers, moved on in step, frame by frame.

import { Chart } from "./chart.js";
import { slider } from "./controls.js";
import { MachineView } from "./machine.js";
import { STORIES } from "./stories.js";

const SPEEDS = [1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000, 300000];
const MEASURE_EVERY = 250; // ms
const SAY_EVERY = 15000; // ms
const at = (id) => document.getElementById(id);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const count = new Intl.NumberFormat("en");

class Page {
  constructor() {
    this.views = ["A", "B"].map((name) => new MachineView(at("machines"), name, this));
    this.chart = new Chart(at("chart"), this.views);
    this.speed = 30000;
    this.running = false;
    this.debt = this.lastFrame = this.lastMeasure = this.lastSaid = 0;
    this.controls();
    this.story(0);
    this.run(!calm.matches);
    requestAnimationFrame((now) => this.frame(now));
  }

  controls() {
    const words = (speed) => `${count.format(speed)} tick${speed > 1 ? "s" : ""} per second`;
    slider(
      at("speed"),
      at("speed-text"),
      SPEEDS,
      words,
      (speed) => (this.speed = speed),
    )(this.speed);
    at("run").addEventListener("click", () => this.run(!this.running));
    at("step").addEventListener("click", () => {
      this.run(false);
      if (!this.busy) this.advance(1, true);
    });
    at("again").addEventListener("click", () => this.start());
    at("seed").addEventListener("change", () => this.start());
    at("clock").addEventListener("change", (event) => this.chart.show(event.target.value));
    at("story").append(...STORIES.map(({ title }, i) => new Option(title, i)));
    at("story").addEventListener("change", (event) => this.story(event.target.value));
  }

  story(number) {
    const { watch, a, b } = STORIES[number];
    at("watch").textContent = watch;
    [a, b].forEach((settings, i) => this.views[i].set(settings));
    this.start();
  }

  /** Both machines from the same random weights. */
  start() {
    this.chart.clear();
    this.debt = 0;
    this.views.forEach((view) => view.start(Math.floor(Math.abs(at("seed").value)) || 0));
  }

  run(running) {
    this.running = running;
    at("run").textContent = running ? "Pause" : "Run";
    this.say();
  }

  /** Both machines move in step: neither is sent on while the other is busy. */
  advance(ticks, measure) {
    this.views.forEach((view) => view.advance(ticks, measure));
  }

  get busy() {
    return this.views.some((view) => view.pending > 0);
  }

  measured(name, result) {
    this.chart.add(name === "A" ? 0 : 1, result);
    this.unplotted = true;
  }

  frame(now) {
    requestAnimationFrame((next) => this.frame(next));
    const past = Math.min(now - this.lastFrame, 100);
    this.lastFrame = now;
    if (this.running) {
      this.debt = Math.min(this.debt + (this.speed * past) / 1000, this.speed / 5 + 1);
      const measure = now - this.lastMeasure > MEASURE_EVERY;
      if (this.debt >= 1 && !this.busy) {
        this.advance(Math.floor(this.debt), measure);
        this.debt %= 1;
        if (measure) this.lastMeasure = now;
      }
    }
    this.draw(now);
  }

  draw(now) {
    this.views.forEach((view) => view.draw(now, this.speed, calm.matches));
    at("ticks").textContent = count.format(this.views[0].ticks);
    this.clockRate(now);
    if (this.unplotted) this.chart.show();
    this.unplotted = false;
    if (this.running && now - this.lastSaid > SAY_EVERY) this.say();
  }

  /** Ticks a second that are really done, once a second. */
  clockRate(now) {
    const seconds = (now - (this.rated?.now ?? -Infinity)) / 1000;
    if (seconds < 1) return;
    const { ticks } = this.views[0];
    const rate = Math.max(ticks - (this.rated?.ticks ?? 0), 0) / seconds;
    at("rate").textContent =
      this.running && rate ? `${count.format(Number(rate.toPrecision(2)))} a second` : "";
    this.rated = { now, ticks };
  }

  /** For screen readers: how it stands, now and then. */
  say() {
    this.lastSaid = this.lastFrame;
    const parts = this.views.map((view) => view.summary());
    at("said").textContent = `${this.running ? "Running" : "Paused"}. ${parts.join(" ")}`;
  }
}

new Page();
