// How are times and places said to people?

/** A duration in the unit that keeps it readable, three significant digits. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 1e9) return trim(ns / 1e9) + " s";
  if (size >= 1e6) return trim(ns / 1e6) + " ms";
  if (size >= 1e3) return trim(ns / 1e3) + " µs";
  return Math.round(ns) + " ns";
}

function trim(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** A point on the axis whose ticks are `step` apart: as many digits as tell neighbours apart. */
export function instant(ns: number, step: number): string {
  const [unit, scale] = step >= 1e8 ? ["s", 1e9] : step >= 1e5 ? ["ms", 1e6] : step >= 100 ? ["µs", 1e3] : ["ns", 1];
  const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / (scale as number)) - 1e-9)));
  return (ns / (scale as number)).toFixed(digits) + " " + unit;
}

/** What an instant of a device's strip means. */
export function explainState(words: Record<string, string>, state: string, cause: string, doing: string, ns: number): string {
  const time = duration(ns);
  if (state === "idle") {
    const why = words[cause] ?? (cause ? cause : "no reason is recorded");
    return `The GPU idles ${time} because ${why}` + (doing ? `: ${doing}.` : ".");
  }
  if (state === "compute") return `The GPU computes for ${time}.`;
  if (state === "communication") return `The GPU communicates with other GPUs for ${time}, and computes nothing meanwhile.`;
  if (state === "copy") return `The GPU copies data for ${time}, and computes nothing meanwhile.`;
  return `What the GPU did in these ${time} was not recorded.`;
}
