/** Places of the page by their ids, and what is put into them. Nothing is touched that is so already. */

export const get = <T extends HTMLElement = HTMLElement>(id: string): T => document.getElementById(id) as T;

export const option = (value: string, title: string): HTMLOptionElement => new Option(title, value);

export function options(id: string, all: [string, string][]): void {
  get(id).replaceChildren(...all.map(([value, title]) => option(value, title)));
}

export function text(id: string, value: string): void {
  const place = get(id);
  if (place.textContent !== value) place.textContent = value;
}

export function pressed(id: string, on: boolean): void {
  const place = get(id);
  if (place.getAttribute("aria-pressed") !== String(on)) place.setAttribute("aria-pressed", String(on));
}

/** A sentence in one of the places for them; none hides it. */
export function notice(id: "error" | "notice", sentence: string | null): void {
  const place = get(id);
  if (place.hidden !== (sentence === null)) place.hidden = sentence === null;
  if (sentence !== null) text(id, sentence);
}

/** For those who hear the page. */
export const say = (sentence: string): void => text("said", sentence);
