// What is behind the cells of a suite's page. Data comes from the JSON block of the page; nothing is fetched.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const dialog = document.getElementById("cell");
  const wide = data.controllers.length;
  const SIGNS = { pass: "✓", fail: "✗", error: "!", "not run": "–" };

  // Elements from values: text is text, never markup.
  function el(name, attributes, ...content) {
    const svg = ["svg", "path", "line", "text", "rect", "g", "polyline", "title"].includes(name);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined) continue;
      if (key === "style") node.style.cssText = value;
      else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value);
    }
    node.append(...content.filter((one) => one !== null && one !== undefined));
    return node;
  }

  // Differences of whole steps back to values; see show/report/series.py.
  function unpack(packed, step) {
    let last = 0;
    return (packed || []).map((d) => (d === null ? null : ((last += d) * step)));
  }

  const table = (cls, heads, rows) =>
    el("div", { class: "scroll" },
      el("table", { class: cls },
        el("thead", {}, el("tr", {}, ...heads.map((one) => el("th", { class: "text", scope: "col" }, one)))),
        el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((one, at) => el(at ? "td" : "th", { class: at ? null : "text" }, one)))))));

  const quoted = (word) => (/^[A-Za-z0-9_.,:=@%+/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

  function verdict(code) {
    const passed = code & 1, close = code & 2;
    return el("span", { class: passed ? "pass" : "fail" }, `${passed ? "✓ met" : "✗ broken"}${close ? " ≈" : ""}`);
  }

  function rules(cell) {
    if (!cell.checks) return cell.why ? el("p", {}, cell.why) : el("p", {}, "No rule is for this cell.");
    return table("rules", ["Rule", "", "Number", "Limit", "Asks"], cell.checks.map(([at, shown, half, limit, code, beyond]) => {
      const rule = data.rules[at];
      const value = el("span", {}, shown, half ? el("span", { class: "interval" }, ` ± ${half}`) : null, beyond ? el("div", { class: "fail" }, beyond) : null);
      return [rule.name, verdict(code), value, limit, el("span", { title: rule.source }, rule.says)];
    }));
  }

  // One small picture: lines over time on a common scale.
  const W = 760, LEFT = 46, RIGHT = 8;
  const DASHES = ["", "7 3", "2 3", "9 3 2 3", "14 4", "4 4"];
  function ticks(top, count) {
    const raw = top / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= raw * (1 - 1e-9));
    return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => +(i * step).toPrecision(12));
  }
  function picture(series, lines, unit, height, label) {
    const count = Math.max(...lines.map((line) => line.values.length), 1);
    const end = series.t0 + count * series.dt;
    const top = (lines.flatMap((line) => line.values).reduce((a, b) => Math.max(a, b || 0), 0) || 1) * 1.08;
    const base = height - 22;
    const x = (t) => LEFT + ((t - series.t0) / (end - series.t0)) * (W - LEFT - RIGHT);
    const y = (v) => base - (v / top) * (base - 8);
    const svg = el("svg", { class: "plot", viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": label });
    for (const tick of ticks(top, 4)) {
      svg.append(el("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(tick), y2: y(tick) }), el("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, `${tick}`));
    }
    for (const tick of ticks(end - series.t0, 8)) {
      const last = x(series.t0 + tick) > W - 30;
      svg.append(el("text", { x: x(series.t0 + tick), y: height - 6, "text-anchor": last ? "end" : "middle" }, `${+(series.t0 + tick).toPrecision(6)} s`));
    }
    for (const line of lines) {
      let path = "", pen = false;
      line.values.forEach((v, i) => {
        if (v === null) { pen = false; return; }
        const from = series.t0 + i * series.dt;
        if (line.stepped) path += `${pen ? "L" : "M"}${x(from).toFixed(1)} ${y(v).toFixed(1)}L${x(from + series.dt).toFixed(1)} ${y(v).toFixed(1)}`;
        else path += `${pen ? "L" : "M"}${x(from + series.dt / 2).toFixed(1)} ${y(v).toFixed(1)}`;
        pen = true;
      });
      if (line.cls === "capacity" && path) path += `L${x(series.t0 + line.values.length * series.dt).toFixed(1)} ${base}L${x(series.t0)} ${base}Z`;
      if (path) svg.append(el("path", { class: line.cls, d: path, style: line.style, "stroke-dasharray": line.dash || null }, el("title", {}, line.label)));
    }
    svg.append(el("text", { x: LEFT + 4, y: 14 }, unit));
    return svg;
  }

  function pictures(cell, controller) {
    const series = cell.series;
    if (!series) return null;
    const style = `--light:${controller.light};--dark:${controller.dark}`;
    const own = series.flows.filter((flow) => flow.own), others = series.flows.filter((flow) => !flow.own);
    const mbit = (packed) => unpack(packed, data.steps.rate / 1e6);
    const dash = (i) => (own.length > 1 ? DASHES[i % DASHES.length] : "");
    const rates = [
      { cls: "capacity", label: "capacity", values: mbit(series.capacity), stepped: true },
      ...others.map((flow) => ({ cls: "other", label: flow.name, values: mbit(flow.rate) })),
      ...own.map((flow) => ({ cls: "share", label: `share of ${flow.name}`, values: mbit(flow.share), stepped: true })),
      ...own.map((flow, i) => ({ cls: "line", label: flow.name, values: mbit(flow.rate), style, dash: dash(i) })),
    ].filter((line) => line.values.some((v) => v !== null));
    const delays = own.map((flow, i) => ({ cls: "line", label: flow.name, values: unpack(flow.delay, data.steps.delay), style, dash: dash(i) }))
      .filter((line) => line.values.some((v) => v !== null));
    const key = series.link ? [`shaded: capacity of ${series.link}${series.links > 1 ? ", the narrowest link" : ""}`] : [];
    if (rates.some((line) => line.cls === "share")) key.push("dotted: the fair share");
    if (others.length) key.push(`grey: ${others.map((flow) => flow.name).join(", ")}`);
    if (own.length > 1) key.push(`calls ${own.map((flow, i) => `${flow.name} (${["whole", "dashed", "dotted", "dash-dotted", "long dashes", "short dashes"][i % 6]})`).join(", ")}`);
    return el("figure", {},
      rates.length ? picture(series, rates, "Received, Mbit/s", 210, "Receive rate over capacity") : null,
      delays.length ? picture(series, delays, "One-way delay, ms", 140, "One-way delay") : null,
      el("figcaption", {}, `Seed ${series.seed}, means over ${series.dt} s; ${key.join("; ")}.`));
  }

  function events(cell) {
    if (!cell.events) return null;
    const rows = cell.events.map(([at, what, flow, seconds]) => [`${at} s`, what, flow, seconds === null ? "never" : `${+seconds.toFixed(1)} s`]);
    return el("details", { open: rows.length <= 8 ? "" : null }, el("summary", {}, "How soon the rate fits again after each event"), table("events", ["At", "Event", "Flow", "Within"], rows));
  }

  function numbers(cell) {
    if (!cell.flows) return null;
    const show = (value, digits) => (value && value.length ? `${value[0].toFixed(digits)}${value.length > 1 ? ` ± ${value[1].toFixed(digits)}` : ""}` : "–");
    const rows = data.metrics.map(([name, label, unit, digits, definition], at) => {
      const title = el("span", { class: "tip", title: `${name}: ${definition}` }, label);
      if (cell.run[at]) return [title, unit, show(cell.run[at], digits), ...cell.flows.slice(1).map(() => "")];
      return cell.flows.some((flow) => flow.values[at]) ? [title, unit, ...cell.flows.map((flow) => show(flow.values[at], digits))] : null;
    }).filter(Boolean);
    const beside = cell.beside.map(([name, kind, rate]) => `${name} (${kind}) ${rate === null ? "–" : rate.toFixed(2)} Mbit/s`);
    if (cell.more[1]) beside.push(`and ${cell.more[1]} more`);
    return el("details", {}, el("summary", {}, `All numbers (${rows.length})`),
      table("number", ["", "Unit", ...cell.flows.map((flow) => flow.name)], rows),
      cell.more[0] ? el("p", { class: "soft" }, `and ${cell.more[0]} calls more`) : null,
      beside.length ? el("p", { class: "soft" }, `Beside them: ${beside.join(", ")}.`) : null,
      el("p", { class: "soft" }, "Means over seeds ± half the 95 % interval."));
  }

  let shown = null; // [case, controller]
  function open(at, who) {
    const cell = data.cells[at * wide + who], about = data.cases[at], controller = data.controllers[who];
    shown = [at, who];
    const step = (by, what, sign) => el("button", { type: "button", title: what, "aria-label": what, onclick: () => move(...by) }, sign);
    const command = `tidegate suite view . ${quoted(about.name)} ${quoted(controller.name)}${cell.seed === undefined ? "" : ` --seed ${cell.seed}`} --out view`;
    dialog.replaceChildren(
      el("header", {},
        el("div", {}, el("h2", {}, el("span", { class: cell.state }, `${SIGNS[cell.state]} ${cell.state}`), ` ${about.name} · ${controller.name}`),
          el("p", { class: "soft" }, [about.title, about.source].filter(Boolean).join(" · "))),
        step([0, -1], "Controller before (left arrow)", "←"), step([0, 1], "Next controller (right arrow)", "→"),
        step([-1, 0], "Case before (up arrow)", "↑"), step([1, 0], "Next case (down arrow)", "↓"),
        el("button", { type: "button", autofocus: "", onclick: () => dialog.close() }, "Close")),
      rules(cell), ...[pictures(cell, controller), events(cell), numbers(cell)].filter(Boolean),
      el("p", { class: "soft" }, "The full view, run again; type it in the folder of this page:"),
      el("pre", {}, el("code", {}, command)),
      cell.digest ? el("p", { class: "soft" }, "Digest ", el("code", {}, cell.digest)) : "");
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }
  const button = (at, who) => document.querySelector(`[data-at="${at},${who}"]`);
  // the next cell that there is in a direction: cases that were not run have none
  function neighbour(at, who, down, right) {
    for (at += down, who += right; at >= 0 && at < data.cases.length && who >= 0 && who < wide; at += down, who += right) if (button(at, who)) return [at, who];
    return null;
  }
  function move(down, right) {
    const next = neighbour(...shown, down, right);
    if (next) open(...next);
  }

  const KEYS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  for (const one of document.querySelectorAll("[data-at]")) {
    const [at, who] = one.dataset.at.split(",").map(Number);
    one.addEventListener("click", () => open(at, who));
    one.addEventListener("mouseenter", () => {
      const checks = data.cells[at * wide + who].checks || [];
      one.title = checks.map(([rule, value, half, limit, code]) => `${code & 1 ? "✓" : "✗"} ${data.rules[rule].name}: ${value}, ${limit}`).join("\n") || data.cells[at * wide + who].why || "";
    });
    one.addEventListener("keydown", (event) => {
      const by = KEYS[event.key], next = by && neighbour(at, who, ...by);
      if (next) { event.preventDefault(); button(...next).focus(); }
    });
  }
  dialog.addEventListener("keydown", (event) => {
    if (KEYS[event.key] && !event.altKey && !event.ctrlKey && !event.metaKey) { event.preventDefault(); move(...KEYS[event.key]); }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { if (shown) button(...shown)?.focus(); });

  // one controller of the drawing alone
  const cloud = document.querySelector(".cloud");
  for (const one of document.querySelectorAll(".legend button")) {
    one.addEventListener("click", () => {
      const on = one.getAttribute("aria-pressed") !== "true";
      for (const other of document.querySelectorAll(".legend button")) other.setAttribute("aria-pressed", `${other === one && on}`);
      cloud.classList.toggle("one", on);
      const name = data.controllers[Number(one.dataset.of)].name;
      for (const part of cloud.querySelectorAll(".of")) part.classList.toggle("on", on && part.dataset.name === name);
      for (const part of cloud.querySelectorAll(".who")) part.classList.toggle("on", on && part.dataset.of === one.dataset.of);
    });
  }
  document.documentElement.dataset.ready = "yes";
})();
