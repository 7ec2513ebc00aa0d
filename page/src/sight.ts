/** Which parts of the page are in sight: what is not need not be drawn while time goes on. */

const hidden = new WeakSet<Element>();

const watcher = new IntersectionObserver((all) => {
  for (const { target, isIntersecting } of all) {
    if (isIntersecting) hidden.delete(target);
    else hidden.add(target);
  }
}, { rootMargin: "100px" });

/** From now on it is known whether an element is in sight. */
export const watch = (element: Element): void => watcher.observe(element);

export const forget = (element: Element): void => watcher.unobserve(element);

export const inSight = (element: Element): boolean => !hidden.has(element);
