/** Elements of the page by their ids, and updates of them that touch only what has changed. */

export const get = <T extends HTMLElement = HTMLElement>(id: string): T => document.getElementById(id) as T;

export const option = (value: string, title: string): HTMLOptionElement => new Option(title, value);

export function options(id: string, all: [string, string][]): void {
  get(id).replaceChildren(...all.map(([value, title]) => option(value, title)));
}

export function text(id: string, value: string): void {
  const element = get(id);
  if (element.textContent !== value) element.textContent = value;
}

export function pressed(id: string, on: boolean): void {
  const element = get(id);
  if (element.getAttribute("aria-pressed") !== String(on)) element.setAttribute("aria-pressed", String(on));
}

/** Shows a sentence in the element `id`; null hides it. */
export function notice(id: "error" | "notice", sentence: string | null): void {
  const element = get(id);
  if (element.hidden !== (sentence === null)) element.hidden = sentence === null;
  if (sentence !== null) text(id, sentence);
}

/** Announces a sentence to screen readers. */
export const say = (sentence: string): void => text("said", sentence);
