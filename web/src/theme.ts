// Which colours does the canvas use? Read from the page's style sheet, so that light, dark and print have one source.

export interface Theme {
  ink: string;
  soft: string;
  faint: string;
  line: string;
  paper: string;
  band: string;
  chain: string;
  pick: string;
  good: string;
  bad: string;
  font: string;
}

export function readTheme(element: Element): Theme {
  const style = getComputedStyle(element);
  const get = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: get("--ink"),
    soft: get("--soft"),
    faint: get("--faint"),
    line: get("--line"),
    paper: get("--paper"),
    band: get("--band"),
    chain: get("--chain"),
    pick: get("--pick"),
    good: get("--good"),
    bad: get("--bad"),
    font: `11px ${get("--sans")}`,
  };
}

const inks = new Map<string, string>();

/** Black or white, whichever reads better on the colour. */
export function inkOn(hex: string): string {
  let ink = inks.get(hex);
  if (ink === undefined) {
    const channel = (at: number) => {
      const c = parseInt(hex.slice(at, at + 2), 16) / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    };
    const light = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
    ink = light > 0.18 ? "#11151c" : "#ffffff";
    inks.set(hex, ink);
  }
  return ink;
}

/** A hatch in the colour: time in which something waits. */
export function hatch(context: CanvasRenderingContext2D, hex: string, ratio: number): CanvasPattern | string {
  const size = Math.round(7 * ratio);
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const ink = tile.getContext("2d");
  if (!ink) return hex;
  ink.fillStyle = hex;
  ink.fillRect(0, 0, size, size);
  ink.strokeStyle = inkOn(hex) === "#ffffff" ? "rgba(255,255,255,.38)" : "rgba(0,0,0,.28)";
  ink.lineWidth = 1.6 * ratio;
  ink.beginPath();
  for (const shift of [-size, 0, size]) {
    ink.moveTo(shift - 1, size + 1);
    ink.lineTo(shift + size + 1, -1);
  }
  ink.stroke();
  const pattern = context.createPattern(tile, "repeat");
  if (!pattern) return hex;
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}
