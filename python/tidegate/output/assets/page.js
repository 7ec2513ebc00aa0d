// Charts over time. Data comes from the JSON block of the page; nothing is fetched.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent).timeline;
  if (!data) return;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let printing = false; // printed pages are always light
  const hue = (pair) => pair[dark.matches && !printing ? 1 : 0];
  const charts = [];
  let zoom = null; // [from, to] in seconds, the same for every chart over time
  let logDelay = data.logDelay;

  // Differences of whole steps back to values; see packed.py.
  function unpack(packed, step) {
    let last = 0;
    return packed.map((d) => (d === null ? null : ((last += d) * step)));
  }

  const QUANTITIES = {
    rate: { unit: "Mbit/s", digits: 2, title: "Rate", height: 230 },
    delay: { unit: "ms", digits: 0, title: "One-way delay", height: 190 },
    loss: { unit: "%", digits: 1, title: "Packets lost", height: 130 },
    marks: { unit: "%", digits: 1, title: "Packets marked", height: 130 },
    trip: { unit: "ms", digits: 0, title: "Round trip", height: 130 },
    pacer: { unit: "kB", digits: 1, title: "Waiting at the sender", height: 110 },
    frame: { unit: "ms", digits: 0, title: "Frame delay", height: 150 },
    late: { unit: "ms", digits: 0, title: "Frame lateness", height: 150 },
    queue: { unit: "kB", digits: 1, title: "Queues", height: 150 },
  };
  // dashes of lines that share a hue
  const DASHES = [undefined, [8, 3], [2, 2], [10, 3, 2, 3], [14, 4], [4, 4]];

  function lines(column, panel, quantity) {
    const out = [];
    const add = (label, packed, style) => {
      if (packed && packed.some((d) => d !== null)) {
        out.push({ label, values: unpack(packed, data.steps[quantity]), ...style });
      }
    };
    const many = column.flows.length > 1;
    const named = (flow, what) => (many ? `${flow} ${what}` : what);
    if (quantity === "rate") {
      add("capacity", panel.capacity, { stroke: css("--edge"), fill: css("--fill"), width: 1, stepped: true });
      // grey, and each with a dash of its own
      panel.others.forEach((flow, i) => {
        add(flow.name, flow.receive, { stroke: css("--muted"), width: 1, dash: DASHES[i % DASHES.length] });
      });
    }
    if (quantity === "queue") {
      (panel.queues || []).forEach((queue, i) => {
        const fill = i ? undefined : css("--fill");
        add(queue.name, queue.bytes, { stroke: css(i ? "--ink" : "--soft"), fill, width: 1.2, dash: DASHES[i % DASHES.length], stepped: true });
      });
    }
    panel.flows.forEach((flow, i) => {
      const stroke = hue(column.flows[i].colour);
      if (quantity === "rate") {
        add(named(flow.name, "received"), flow.receive, { stroke, width: 2 });
        add(named(flow.name, "sent"), flow.sent, { stroke, width: 2 });
        if (!many) {
          add("encoders", flow.encoder, { stroke: css("--soft"), width: 1, dash: DASHES[2] });
          add("acknowledged", flow.acked, { stroke, width: 1, dash: DASHES[3] });
          add("goodput", flow.goodput, { stroke, width: 1, dash: DASHES[1] });
        }
        add(named(flow.name, "target"), flow.target, { stroke: many ? stroke : css("--ink"), width: 1, dash: [5, 4] });
      } else if (quantity === "delay") {
        add(named(flow.name, "mean"), flow.delay, { stroke, width: 2 });
        if (!many) add("largest", flow.delayMax, { stroke, width: 0.7 });
      } else if (["trip", "pacer", "frame", "late"].includes(quantity)) {
        add(many ? flow.name : "largest", flow[quantity], { stroke, width: 1.5, fill: quantity === "pacer" && !many ? stroke + "33" : undefined });
      } else if (quantity === "loss" || quantity === "marks") {
        add(named(flow.name, quantity === "loss" ? "lost" : "marked"), flow[quantity], { stroke, width: 1.5, stepped: true, fill: many ? undefined : stroke + "33" });
      }
    });
    return out;
  }

  // Charts of one quantity share their scale, so that controllers can be compared by eye. A capacity far above
  // all flows must not flatten them: it may fill at most half of the height by itself.
  function scaleOf(quantity) {
    let flows = 0, capacity = 0, low = Infinity;
    for (const chart of charts) {
      if (chart.quantity !== quantity) continue;
      chart.lines.forEach((line) => {
        line.values.forEach((v, i) => {
          const t = chart.t[i];
          if (v === null || (zoom && (t < zoom[0] || t > zoom[1]))) return;
          if (line.label === "capacity") capacity = Math.max(capacity, v);
          else { flows = Math.max(flows, v); if (v > 0) low = Math.min(low, v); }
        });
      });
    }
    const least = { rate: 0.1, delay: 10, loss: 1, marks: 1, queue: 1, trip: 10, pacer: 1, frame: 10, late: 10 }[quantity];
    const top = Math.max(flows, Math.min(capacity, flows * 2 || capacity), least) * 1.06;
    if (quantity !== "delay" || !logDelay) return [0, top];
    // whole decades: otherwise a logarithmic axis would have its ticks at odd numbers
    const decade = (value, round) => 10 ** round(Math.log10(value));
    return [decade(Math.min(low, top / 2), Math.floor), decade(top, Math.ceil)];
  }

  function axes(label, unit) {
    const common = () => ({
      stroke: css("--soft"), font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif",
      grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--line"), width: 1, size: 4 },
    });
    return [
      { ...common(), size: 34, values: (u, ticks) => ticks.map((v) => `${v}${label}`) },
      { ...common(), size: 48, values: (u, ticks) => ticks.map((v) => (v === null ? "" : `${+v.toPrecision(3)}`)), label: unit, labelSize: 16, labelGap: 0 },
    ];
  }

  // Delay over decades, with 2 and 5 between them.
  function logAxes(x, what) {
    const ticks = [];
    for (let decade = 10 ** Math.floor(Math.log10(x[0])); decade <= x[x.length - 1]; decade *= 10) {
      for (const step of [1, 2, 5]) if (decade * step >= x[0] && decade * step <= x[x.length - 1]) ticks.push(decade * step);
    }
    const [across, up] = axes(" ms", what);
    return [{ ...across, splits: () => ticks, values: (u, some) => some.map((v) => `${+v.toPrecision(3)} ms`), filter: (u, some) => some }, up];
  }

  function timeChart(host, column, panel, quantity) {
    const spec = QUANTITIES[quantity];
    const shown = lines(column, panel, quantity);
    const t = Array.from({ length: panel.n }, (_, i) => +(panel.t0 + i * panel.dt).toFixed(3));
    const full = [panel.t0, panel.t0 + panel.n * panel.dt];
    // a value without neighbours is no line
    const alone = (u, series) => {
      const y = u.data[series], known = (at) => y[at] !== null && y[at] !== undefined;
      return Array.from(y.keys()).filter((at) => known(at) && !known(at - 1) && !known(at + 1));
    };
    const chart = { quantity, lines: shown, t, host, full };
    chart.make = () => {
      const log = quantity === "delay" && logDelay;
      chart.plot = new uPlot({
        width: host.clientWidth, height: spec.height, padding: [8, 18, 0, 0],
        scales: {
          x: { time: false, range: () => zoom || full },
          y: { distr: log ? 3 : 1, log: 10, range: () => scaleOf(quantity) },
        },
        axes: axes(" s", spec.unit),
        legend: { live: true },
        cursor: {
          drag: { x: true, y: false, setScale: false },
          sync: {
            key: "time", scales: ["x", null],
            filters: { pub: (type) => type === "mousemove" || type === "mouseleave", sub: () => true },
          },
          points: { size: 5 },
          bind: { dblclick: () => () => { setZoom(null); return null; } },
        },
        hooks: {
          drawClear: quantity !== data.shaded ? [] : [(u) => {
            // times without a new picture
            const { ctx, bbox } = u;
            ctx.save();
            ctx.fillStyle = css("--freeze");
            for (const flow of panel.flows) {
              for (const [from, to] of flow.without_picture || []) {
                const a = Math.max(u.valToPos(from, "x", true), bbox.left), b = Math.min(u.valToPos(to, "x", true), bbox.left + bbox.width);
                if (b > a) ctx.fillRect(a, bbox.top, b - a, bbox.height);
              }
            }
            ctx.restore();
          }],
          setSelect: [(u) => {
            if (u.select.width < 3) return;
            const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            setZoom([from, to]);
          }],
        },
        series: [
          { label: "t", value: (u, v) => (v === null ? "–" : `${v.toFixed(1)} s`) },
          ...shown.map((line) => ({
            label: line.label, stroke: line.stroke, fill: line.fill, width: line.width, dash: line.dash,
            paths: line.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
            points: { show: false, size: 4, filter: alone }, spanGaps: false,
            value: (u, v) => (v === null || v === undefined ? "–" : `${v.toFixed(spec.digits)} ${spec.unit}`),
          })),
        ],
      }, [t, ...shown.map((line) => (log ? line.values.map((v) => (v > 0 ? v : null)) : line.values))], host);
    };
    charts.push(chart);
    return shown.length > 0;
  }

  function setZoom(range) {
    zoom = range;
    document.getElementById("reset").disabled = zoom === null;
    document.documentElement.dataset.zoom = zoom ? zoom.map((s) => s.toFixed(3)).join(" ") : "";
    for (const chart of charts) {
      if (!chart.full) continue; // not over time
      const [min, max] = zoom || chart.full;
      chart.plot.setScale("x", { min, max });
    }
  }

  function build() {
    for (const chart of charts) if (chart.plot) chart.plot.destroy();
    charts.length = 0;
    const seed = document.getElementById("seed");
    for (const host of document.querySelectorAll("[data-chart]")) {
      const column = data.columns[+host.dataset.column];
      const panel = column.panels[seed ? Math.min(+seed.value, column.panels.length - 1) : 0];
      const some = timeChart(host, column, panel, host.dataset.chart);
      host.closest("figure").hidden = !some;
      if (!some) charts.pop();
      // hide headings without charts: the programs of a session, for example, report no round trip
      const section = host.closest("section");
      section.hidden = !section.querySelector("figure:not([hidden])");
    }
    const host = document.getElementById("cdf");
    if (host && data.cdf.lines.length) cdfChart(host);
    for (const chart of charts) chart.make();
  }

  function cdfChart(host) {
    const chart = { quantity: "cdf", lines: [], t: [], host };
    chart.make = () => {
      chart.plot = new uPlot({
        width: host.clientWidth, height: 320, padding: [8, 18, 0, 0],
        scales: { x: { time: false, distr: 3, log: 10, range: () => [data.cdf.x[0], data.cdf.x[data.cdf.x.length - 1]] }, y: { range: () => [0, 101] } },
        axes: logAxes(data.cdf.x, "% of packets"),
        hooks: {
          draw: [(u) => {
            // the 95th percentile of each line, as in the table and the scatter
            const { ctx } = u, y = u.valToPos(95, "y", true);
            ctx.save();
            for (const line of data.cdf.lines) {
              ctx.beginPath();
              ctx.arc(u.valToPos(line.p95, "x", true), y, 4 * devicePixelRatio, 0, 2 * Math.PI);
              ctx.fillStyle = hue(line.colour);
              ctx.fill();
            }
            ctx.restore();
          }],
        },
        cursor: { drag: { x: true, y: false }, points: { size: 5 } },
        series: [
          { label: "delay", value: (u, v) => (v === null ? "–" : `${v.toFixed(0)} ms`) },
          ...data.cdf.lines.map((line) => ({
            label: line.label, stroke: hue(line.colour), width: 2, dash: line.dash.length ? line.dash : undefined, points: { show: false },
            value: (u, v) => (v === null || v === undefined ? "–" : `${v.toFixed(1)} %`),
          })),
        ],
      }, [data.cdf.x, ...data.cdf.lines.map((line) => line.y.map((v) => v / 10))], host);
    };
    charts.push(chart);
  }

  const seed = document.getElementById("seed");
  if (seed) seed.addEventListener("change", build);
  const log = document.getElementById("log");
  if (log) {
    log.checked = logDelay;
    log.addEventListener("change", () => { logDelay = log.checked; build(); });
  }
  const reset = document.getElementById("reset");
  if (reset) reset.addEventListener("click", () => setZoom(null));
  dark.addEventListener("change", build);
  // paper is narrower than a screen, and light: charts are drawn again for it
  const paper = (on) => {
    printing = on;
    document.documentElement.classList.toggle("printing", on);
    build();
  };
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  let pending = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => {
      for (const chart of charts) chart.plot.setSize({ width: chart.host.clientWidth, height: chart.plot.height });
    });
  });
  build();
  document.documentElement.dataset.charts = String(charts.length);
})();

// The details of cells that can be opened.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent).cells;
  if (!data) return;
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

  // Differences of whole steps back to values; see packed.py.
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
    const passed = code & 1;
    return el("span", { class: passed ? "pass" : "fail" }, passed ? "✓ met" : "✗ broken");
  }

  function rules(cell) {
    if (!cell.checks) return cell.why ? el("p", {}, cell.why) : el("p", {}, "No rule is for this cell.");
    return table("rules", ["Rule", "", "Number", "Limit", "Asks"], cell.checks.map(([at, shown, half, limit, code, beyond]) => {
      const rule = data.rules[at];
      const value = el("span", {}, shown, half ? el("span", { class: "interval" }, ` ± ${half}`) : null, code & 2 ? " ≈" : null, beyond ? el("div", { class: "fail" }, beyond) : null);
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
    const buttons = () => [...dialog.querySelectorAll("header button")];
    const focused = buttons().indexOf(document.activeElement);
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
    // the focused button was replaced: its successor gets the focus, or the last button, so that keys still work
    else buttons().at(focused).focus();
    dialog.scrollTop = 0;
  }
  const button = (at, who) => document.querySelector(`[data-at="${at},${who}"]`);
  // the next cell in a direction; cases that were not run have no cell
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

})();

// A chart with a legend: highlights one contender.
(() => {
  "use strict";
  for (const beside of document.querySelectorAll(".beside")) {
    const plot = beside.querySelector(".plot");
    const buttons = beside.querySelectorAll("button[data-name]");
    for (const button of buttons) {
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        for (const other of buttons) other.setAttribute("aria-pressed", `${other === button && on}`);
        plot.classList.toggle("one", on);
        for (const part of plot.querySelectorAll("[data-name]")) part.classList.toggle("on", on && part.dataset.name === button.dataset.name);
      });
    }
  }
  document.documentElement.dataset.ready = "yes";
})();
