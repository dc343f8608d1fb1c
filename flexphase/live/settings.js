// What a machine can be set to: three choices and the sliders that belong to them.

const steps = (first, last, step) =>
  Array.from(
    { length: Math.round((last - first) / step) + 1 },
    (_, i) => +(first + i * step).toFixed(4),
  );
const SHARES = steps(0.05, 0.95, 0.05);
const BLOCKS = [1, 2, 4, 8, 16, 32, 64, 128];
const isOne =
  (name, ...values) =>
  (settings) =>
    values.includes(settings[name]);

export const CHOICES = {
  rule: {
    label: "Learning rule",
    options: {
      "two-term": "Two-term",
      isd: "ISD",
      aol: "Always on",
    },
  },
  selection: {
    label: "Which phase comes next",
    options: {
      alternating: "Alternating",
      bernoulli: "Bernoulli",
      markov: "Markov",
      pairs: "Pairs",
      homeostatic: "Homeostatic",
      blocks: "Blocks",
    },
  },
  duration: {
    label: "How long a phase lasts",
    options: {
      fixed: "Fixed",
      geometric: "Geometric",
      gamma: "Gamma",
      lognormal: "Log-normal",
      weibull: "Weibull",
      matched: "Matched",
    },
  },
};

/** A slider moves along `values`; it is shown `when` the choices make use of it. */
export const SLIDERS = {
  b: {
    label: "b, share of positive phases",
    values: SHARES,
    when: isOne("selection", "bernoulli", "homeostatic"),
  },
  stayPositive: {
    label: "Chance that + follows +",
    values: SHARES,
    when: isOne("selection", "markov"),
  },
  stayNegative: {
    label: "Chance that − follows −",
    values: SHARES,
    when: isOne("selection", "markov"),
  },
  kappa: {
    label: "κ, pull back to balance",
    values: [0.05, 0.1, 0.2, 0.5, 1],
    when: isOne("selection", "homeostatic"),
  },
  blockPositive: {
    label: "Positive phases in a row",
    values: BLOCKS,
    when: isOne("selection", "blocks"),
  },
  blockNegative: {
    label: "Negative phases in a row",
    values: BLOCKS,
    when: isOne("selection", "blocks"),
  },
  tau: {
    label: "τ, mean ticks per phase",
    values: [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300],
    when: () => true,
  },
  cv: {
    label: "Spread of lengths (sd / mean)",
    values: [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3],
    when: isOne("duration", "gamma", "lognormal", "weibull"),
  },
  eta: {
    label: "η, learning rate per phase",
    values: [0.0005, 0.001, 0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1],
    when: () => true,
  },
};

export const DEFAULTS = {
  rule: "aol",
  selection: "bernoulli",
  duration: "fixed",
  b: 0.5,
  stayPositive: 0.5,
  stayNegative: 0.5,
  kappa: 0.5,
  blockPositive: 8,
  blockNegative: 8,
  tau: 10,
  cv: 1,
  eta: 0.005,
};

/** The two-term rule waits for a negative phase after each positive one: its phases alternate. */
export function fitting(settings) {
  return settings.rule === "two-term" ? { ...settings, selection: "alternating" } : settings;
}

/** The rules by their full names. */
export const NAMES = {
  "two-term": "Two-term rule (classical)",
  isd: "Importance sampling (ISD)",
  aol: "Always-on learning (AoL)",
};

/** The settings in a sentence or two. */
export function described(s) {
  const phases = {
    alternating: "Positive and negative phases alternate strictly",
    bernoulli: `Each phase is positive with probability ${s.b}`,
    markov: `+ follows + with probability ${s.stayPositive}, − follows − with ${s.stayNegative}`,
    pairs: "Phases come in pairs, one of each sign, in random order",
    homeostatic: "The sign that is behind becomes more likely",
    blocks: `${s.blockPositive} positive phases in a row, then ${s.blockNegative} negative ones`,
  }[s.selection];
  const ticks = s.tau === 1 ? "1 tick" : `${s.tau} ticks`;
  const lengths = {
    fixed: `${ticks} each`,
    matched: `about ${ticks}, a negative phase as long as the positive one before`,
  }[s.duration];
  const learning = {
    "two-term": "It learns once, after both",
    isd: "It learns once, at the end of each phase",
    aol: "It learns at every tick",
  }[s.rule];
  return `${phases}, ${lengths ?? `${ticks} on average`}. ${learning}.`;
}

/** The command that trains the same machine to the end. */
export function command(s) {
  const used = {
    bernoulli: `--b ${s.b}`,
    markov: `--stay ${s.stayPositive} ${s.stayNegative}`,
    homeostatic: `--b ${s.b} --kappa ${s.kappa}`,
    blocks: `--block ${s.blockPositive} ${s.blockNegative}`,
  }[s.selection];
  const spread = SLIDERS.cv.when(s) ? `--cv ${s.cv}` : "";
  return [
    "flexphase train rbm --data bas --hidden 16 --no-visible-bias --negative-start carry",
    `--rule ${s.rule} --select ${s.selection} ${used ?? ""}`,
    `--duration ${s.duration} --length ${s.tau} ${spread} --lr ${s.eta}`,
  ]
    .join(" ")
    .replace(/\s+/g, " ")
    .trim();
}
