/** The data that `tidegate play` puts into the page: situations, each a scenario and its form for the engine. */

/** A table whose keys the page passes on without reading them. */
export type Table = Record<string, unknown>;

/** One way of a link, as the engine takes it. Times in ns, rates in bit/s. */
export interface LoweredLink extends Table {
  name: string;
  capacity: unknown;
  settings: { delay: number; loss: unknown } & Table;
}

export interface LoweredFlow extends Table {
  name: string;
}

export interface Lowered extends Table {
  duration: number;
  seed: number;
  links: LoweredLink[];
  flows: LoweredFlow[];
  moves?: LoweredMove[];
}

/** New properties of a link as the engine takes them: delay in ns, capacity in bit/s. */
export interface LoweredChange extends Table {
  capacity?: number;
  delay?: number;
  loss?: unknown;
}

/** A change as the engine takes it: time in ns, and a link with its new properties, or a flow that begins, ends, or goes over to
 * another path. */
export interface LoweredMove {
  time: number;
  link?: string;
  flow?: string;
  change?: LoweredChange;
  running?: boolean;
  path?: readonly string[];
  back?: readonly string[];
  signalled?: boolean;
}

export interface Lesson {
  number: number;
  look_for: string;
  question: string;
  answer: string;
}

export interface Situation {
  id: string;
  title: string;
  about: string;
  lesson: Lesson | null;
  /** The scenario as a TOML document. */
  document: Table;
  lowered: Lowered;
  /** Recorded networks, which the engine reads. */
  traces: unknown[];
  /** The media flow whose controller is chosen. */
  flow: string;
  /** The link whose capacity is dragged. */
  link: string;
  links: string[];
  /** Paths that the flow can take, each a list of links from its beginning to its end; the first one is its own. */
  paths: string[][];
  contenders: string[];
  controllers: Record<string, LoweredFlow>;
  queues: Record<string, { title: string; document: Table; lowered: LoweredLink }>;
  /** A TCP download; null where the way of the flow cannot have one. */
  download: { document: Table; lowered: LoweredFlow } | null;
  /** Why this cannot be played; null if it can. */
  refused: string | null;
}

export interface Payload {
  version: string;
  situations: Situation[];
}

const isText = (value: unknown): value is string => typeof value === "string";

const isTable = (value: unknown): value is Table =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a value has the shape of a situation, as far as the page relies on it before the engine checks the rest. */
export function isSituation(value: unknown): value is Situation {
  if (!isTable(value) || typeof value.id !== "string" || typeof value.title !== "string") return false;
  if (typeof value.refused === "string") return true;
  const { lowered, document, controllers, queues, download, lesson } = value;
  return (
    value.refused === null && typeof value.about === "string" && typeof value.flow === "string" && typeof value.link === "string" &&
    isTable(document) && areTables(document.flows) && areTables(document.links) && (document.moves === undefined || areTables(document.moves)) &&
    isTable(lowered) && Number.isSafeInteger(lowered.duration) && Number.isSafeInteger(lowered.seed) &&
    Array.isArray(lowered.links) && lowered.links.every(isLink) &&
    lowered.links.some((link) => link.name === value.link) &&
    areTables(lowered.flows) && lowered.flows.some((flow) => flow.name === value.flow) &&
    (lowered.moves == null || (areTables(lowered.moves) && lowered.moves.every((move) => Number.isFinite(move.time)))) &&
    isTable(controllers) && Object.values(controllers).every((flow) => isTable(flow) && flow.name === value.flow) && Object.keys(controllers).length > 0 &&
    isTable(queues) && Object.values(queues).every((queue) => isTable(queue) && isText(queue.title) && isLink(queue.lowered) && queue.lowered.name === value.link && isTable(queue.document)) &&
    (download == null || (isTable(download) && isTable(download.document) && isTable(download.lowered))) &&
    (lesson == null || (isTable(lesson) && Number.isSafeInteger(lesson.number) && [lesson.look_for, lesson.question, lesson.answer].every(isText))) &&
    Array.isArray(value.traces) && areTexts(value.links) && areTexts(value.contenders) &&
    Array.isArray(value.paths) && value.paths.every(areTexts)
  );
}

const areTables = (value: unknown): value is Table[] => Array.isArray(value) && value.every(isTable);

const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);

const isLink = (value: unknown): value is LoweredLink =>
  isTable(value) && typeof value.name === "string" && isTable(value.settings);

/** A situation that cannot be played: its texts, and nothing to run. */
function empty({ id, title, about, lesson, refused }: Situation): Situation {
  const nothingToRun = { document: {}, traces: [], flow: "", link: "", links: [], paths: [], contenders: [], controllers: {}, queues: {}, download: null };
  return { id, title, about: about ?? "", lesson: lesson ?? null, refused, lowered: { duration: 0, seed: 0, links: [], flows: [] }, ...nothingToRun };
}

/** The payload in the text of its script element.
 *
 * @throws Error with a sentence when there is none, or it is damaged.
 */
export function readPayload(text: string): Payload {
  let payload: unknown = null;
  try {
    payload = JSON.parse(text.replace(/^\/\*.*?\*\//, ""));
  } catch {
    throw new Error("The data of this page is damaged: it is not JSON. Make the page again with `tidegate play --out play.html`.");
  }
  if (!isTable(payload) || !Array.isArray(payload.situations) || payload.situations.length === 0) {
    throw new Error("This page has no scenario: it is an empty template. Run `tidegate play`, which opens a page with scenarios.");
  }
  if (!payload.situations.every(isSituation)) {
    throw new Error("The data of this page does not have the expected form: page and package are of different versions. Make the page again with `tidegate play --out play.html`.");
  }
  return { version: String(payload.version ?? ""), situations: payload.situations.map((situation) => (situation.refused === null ? situation : empty(situation))) };
}
