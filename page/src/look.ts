/** Colours of controllers: those of reports and figures (`python/tidegate/output/palette.py`; a test compares them). */

export const HUES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#555555"];
export const HUES_ON_DARK = ["#4ba6e8", "#ff8b4d", "#35c99b", "#e8a6cb", "#f2bb4a", "#9bd6fa", "#c39b8f", "#b5bac2"];

const KNOWN: Record<string, number> = {
  gcc: 0, "gcc-remb": 5, fixed: 1, tfrc: 4, "tfrc-sp": 6, sprout: 2, "sprout-ewma": 2, lookup_table: 3, "rrb-simd": 7, nada: 3,
  scream: 1, "scream-v1": 1,
};

/** Indices of hues, one for each controller; if two would have the same, the second takes the next one. */
export function hues(controllers: readonly string[]): number[] {
  const used: number[] = [];
  for (const word of controllers) {
    let hue = KNOWN[word.split(":")[0]!] ?? 7;
    while (used.includes(hue)) hue = (hue + 1) % HUES.length;
    used.push(hue);
  }
  return used;
}

export interface Theme {
  dark: boolean;
  ink: string;
  soft: string;
  grid: string;
  fill: string;
  edge: string;
  page: string;
  warn: string;
  bad: string;
  freeze: string;
}

/** Current colours of the style sheet, for drawing on canvases. */
export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string): string => style.getPropertyValue(name).trim();
  return {
    dark: get("--dark") === "1", ink: get("--ink"), soft: get("--soft"), grid: get("--grid"), fill: get("--fill"),
    edge: get("--edge"), page: get("--page"), warn: get("--warn"), bad: get("--bad"), freeze: get("--freeze"),
  };
}

export const colour = (hue: number, dark: boolean): string => (dark ? HUES_ON_DARK : HUES)[hue % HUES.length]!;
