// Random numbers from a seed: xoshiro128** (Blackman and Vigna), its state filled by splitmix32.

export class Noise {
  /** @param {number} seed a whole number */
  constructor(seed) {
    let x = seed | 0;
    this.state = Uint32Array.from({ length: 4 }, () => {
      x = (x + 0x9e3779b9) | 0;
      let z = x;
      z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
      return z ^ (z >>> 16);
    });
  }

  /** 32 random bits. */
  bits() {
    const s = this.state;
    const x = Math.imul(s[1], 5);
    const result = Math.imul((x << 7) | (x >>> 25), 9) >>> 0;
    const t = s[1] << 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 11) | (s[3] >>> 21);
    return result;
  }

  /** Uniform in [0, 1), a multiple of 2^-24, so that a float32 holds it exactly. */
  uniform() {
    return (this.bits() >>> 8) * 2 ** -24;
  }

  /** Standard normal (Box and Muller). */
  normal() {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }
}
