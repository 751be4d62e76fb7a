// Everything that one painting of the canvas depends on.
import type { Layout } from "./layout.ts";
import type { Palette, Timeline } from "./model.ts";
import type { Theme } from "./theme.ts";
import type { View } from "./view.ts";

export interface Scene {
  t: Timeline;
  palette: Palette;
  theme: Theme;
  layout: Layout;
  view: View;
  zero: number;
  width: number;
  height: number;
  scroll: number;
  ratio: number;
  picked: number;
  hovered: number;
  matches: Uint8Array | null;
  /** By name: work that the other of two timelines does not have; `gone` if the other is the later one. */
  marks: Uint8Array | null;
  gone: boolean;
  chain: boolean;
  arrows: boolean;
  near: (box: number) => number[];
}
