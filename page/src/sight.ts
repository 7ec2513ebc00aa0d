/** Visibility of parts of the page: hidden parts need not be drawn while time goes on. */

const hidden = new WeakSet<Element>();

const watcher = new IntersectionObserver((all) => {
  for (const { target, isIntersecting } of all) {
    if (isIntersecting) hidden.delete(target);
    else hidden.add(target);
  }
}, { rootMargin: "100px" });

/** Observes whether an element is in sight. */
export const watch = (element: Element): void => watcher.observe(element);

export const forget = (element: Element): void => watcher.unobserve(element);

export const inSight = (element: Element): boolean => !hidden.has(element);
