// Comparisons to start from: what A and B are set to, and what to watch. tests/test_live.py checks
// what is said here.

export const STORIES = [
  {
    title: "Classical rule, always-on learning",
    watch:
      "A alternates strictly and remembers its positive term until the negative phase is " +
      "over. B picks phases at random, learns at every tick and remembers nothing. B's " +
      "weights are noisier, but its slow weights know the patterns as well as A's.",
    a: { rule: "two-term", selection: "alternating", eta: 0.01 },
    b: { rule: "aol", eta: 0.01 },
  },
  {
    title: "In strict order, at random",
    watch:
      "Both learn at every tick. In A phases alternate; in B each sign is drawn by a coin, so " +
      "that runs of one sign push the weights far before the other sign pulls them back. Slow " +
      "weights do not mind.",
    a: { selection: "alternating" },
    b: { selection: "bernoulli" },
  },
  {
    title: "Random lengths, matched or not",
    watch:
      "Phases alternate and have random lengths. In A a negative phase lasts as long as the " +
      "positive one before it, and most of the noise that random lengths bring to B is gone.",
    a: { selection: "alternating", duration: "matched" },
    b: { selection: "alternating", duration: "geometric" },
  },
  {
    title: "Seldom or often at the data",
    watch:
      "A is held at a pattern in one phase out of five, B in four. Importance weights make up " +
      "for it: rare phases count more. Both learn; here the machine that mostly runs freely " +
      "is the calmer one.",
    a: { b: 0.2 },
    b: { b: 0.8 },
  },
  {
    title: "Long stretches of one sign",
    watch:
      "In A phases come in pairs. B gets 64 positive phases in a row, then 64 negative ones, " +
      "as if it were kept from sleep: its knowledge swings with every block, and its slow " +
      "weights still learn.",
    a: { selection: "pairs" },
    b: { selection: "blocks", blockPositive: 64, blockNegative: 64 },
  },
  {
    title: "A learning rate that is too high",
    watch:
      "B learns four times as fast. Soon nearly all its samples are right, yet its likelihood " +
      "is worse than before training: it believes in a few patterns only, and not for long. " +
      "Its slow weights know them all.",
    a: { eta: 0.005 },
    b: { eta: 0.02 },
  },
  {
    title: "Heavy tails",
    watch:
      "Lengths of phases are log-normal with the same mean. In B most phases are short and a " +
      "few are very long, and each of those can spoil what was learnt.",
    a: { selection: "alternating", duration: "lognormal", cv: 0.3 },
    b: { selection: "alternating", duration: "lognormal", cv: 3 },
  },
];
