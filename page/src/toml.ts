/** A play as the scenario file that `tidegate run` takes. */

import { stringify } from "smol-toml";
import { document, type Play } from "./play.ts";
import type { Table } from "./payload.ts";

/** The file's text. Tables without a value (null) have no place in TOML and are left out. */
export const toml = (play: Play, controller: string): string => `${stringify(withoutNulls(document(play, controller)) as Table)}\n`;

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(entries.map(([key, value]) => [key, withoutNulls(value)]));
}

/** A name for the file. */
export const fileName = (play: Play, controller: string): string =>
  `${play.situation.id}-${controller}`.replace(/[^A-Za-z0-9._-]+/g, "-") + ".toml";
