// The form of a machine: choices and sliders with their labels, and what they are set to.

import { CHOICES, DEFAULTS, fitting, SLIDERS } from "./settings.js";

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

/** A slider over a list of values, which says its value in words; onchange gets the value. */
export function slider(input, output, values, words, onchange) {
  const show = () => {
    const text = words(values[input.value]);
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  Object.assign(input, { min: 0, max: values.length - 1, step: 1 });
  input.addEventListener("input", () => {
    show();
    onchange(values[input.value]);
  });
  return (value) => {
    input.value = values.indexOf(value);
    show();
  };
}

export class Controls {
  /** Fields go into `root`, with ids that begin with `name`; onchange gets the settings. */
  constructor(root, name, onchange) {
    this.settings = { ...DEFAULTS };
    this.onchange = onchange;
    this.setters = {};
    this.fields = {};
    for (const [key, choice] of Object.entries(CHOICES)) this.addChoice(root, name, key, choice);
    for (const [key, range] of Object.entries(SLIDERS)) this.addSlider(root, name, key, range);
  }

  addChoice(root, name, key, { label, options }) {
    const id = `${name}-${key}`;
    const select = element("select", { id });
    for (const [value, text] of Object.entries(options)) {
      select.append(element("option", { value, textContent: text }));
    }
    select.addEventListener("change", () => this.change({ [key]: select.value }));
    this.setters[key] = (value) => (select.value = value);
    this.fields[key] = element("div", { className: "field" });
    this.fields[key].append(element("label", { htmlFor: id, textContent: label }), select);
    root.append(this.fields[key]);
  }

  addSlider(root, name, key, { label, values }) {
    const id = `${name}-${key}`;
    const input = element("input", { type: "range", id });
    const output = element("output", { htmlFor: id });
    const head = element("div", {}, element("label", { htmlFor: id, textContent: label }), output);
    this.setters[key] = slider(input, output, values, String, (v) => this.change({ [key]: v }));
    this.fields[key] = element("div", { className: "field" }, head, input);
    root.append(this.fields[key]);
  }

  change(some) {
    this.set({ ...this.settings, ...some });
    this.onchange(this.settings);
  }

  /** Show these settings, without calling onchange. */
  set(settings) {
    this.settings = fitting({ ...DEFAULTS, ...settings });
    for (const [key, value] of Object.entries(this.settings)) this.setters[key](value);
    for (const [key, { when }] of Object.entries(SLIDERS)) {
      this.fields[key].hidden = !when(this.settings);
    }
    const forced = this.settings.rule === "two-term";
    this.fields.selection.querySelector("select").disabled = forced;
    this.fields.selection.title = forced ? "The two-term rule needs alternating phases." : "";
  }
}
