// The graph of words: words as pills, arrows to the word that follows, to be zoomed, dragged, hovered and clicked.

import { draw, press, shortened, shown, signed } from "./dom.js";

const LINE = 15, PAD = 9, GAP = 30, STOP = new Set(("a an the of to in on at by for with and or as is are was were be been it its this that these those i " +
  "you he she we they his her their my your our from has have had do does did will would can could so if then than there here what which who " +
  ", . ; : ( ) ' ` ! ? \" - 's 've 're 'd 'll").split(" "));

export class Graph {
  constructor(place, on) {
    Object.assign(this, { place, on, all: false });
    place.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    place.addEventListener("pointerdown", (event) => this.grab(event));
    place.addEventListener("keydown", (event) => this.keys(event));
  }

  show(answer, scale) {
    this.place.classList.remove("lit"); // of a word that may be gone
    this.place.replaceChildren(); // first: a word that had the focus loses it here, and looks up its own answer's edges
    Object.assign(this, { answer, scale });
    this.chosen = this.visible();
    const boxes = this.settle();
    this.place.append(this.heads());
    this.bridges(boxes);
    this.edges(boxes);
    this.nodes(boxes);
    this.fit(boxes);
    return answer.nodes.length - this.chosen.size;
  }

  visible() {
    // Punctuation and function words are folded away, unless they weigh something, alone or in a pair.
    const { nodes, edges } = this.answer, weigh = (weight) => Math.abs(this.scale.share(weight)) >= 0.25;
    const heavy = new Set([...nodes.keys()].filter((k) => weigh(nodes[k].weight)));
    for (const edge of edges) if (weigh(edge.weight)) heavy.add(edge.source).add(edge.target);
    const few = nodes.length <= 8;
    return new Set([...nodes.keys()].filter((k) => this.all || few || heavy.has(k) || !STOP.has(shown(nodes[k].word))));
  }

  settle() {
    // The server's places, stretched until no two pills touch and an arrow fits between them.
    const chosen = [...this.chosen], n = Math.max(chosen.length, 1);
    const area = (200 + 110 * Math.sqrt(n)) * (130 + 70 * Math.sqrt(n)), there = this.place.clientWidth || 600;
    const width = there > 480 ? 200 + 110 * Math.sqrt(n) : Math.max(120, there - 140), height = Math.max(120, Math.min(area / width, 2.2 * width + 200));
    const boxes = new Map(chosen.map((k) => {
      const node = this.answer.nodes[k], name = shortened(shown(node.word), 22);
      return [k, { name, x: node.x * width, y: node.y * height, w: Array.from(name).length * 7.6 + 2 * PAD, h: LINE + 12 }];
    }));
    const list = [...boxes.values()];
    for (let round = 0; round < 200; round += 1) {
      let moved = false;
      for (let a = 0; a < list.length; a += 1) {
        for (let b = a + 1; b < list.length; b += 1) {
          const [p, q] = [list[a], list[b]], dx = q.x - p.x || 0.1, dy = q.y - p.y || 0.1;
          const over = (p.w + q.w) / 2 + GAP - Math.abs(dx), under = (p.h + q.h) / 2 + GAP - Math.abs(dy);
          if (over <= 0 || under <= 0) continue;
          moved = true;
          if (over < under) { p.x -= (Math.sign(dx) * over) / 2; q.x += (Math.sign(dx) * over) / 2; }
          else { p.y -= (Math.sign(dy) * under) / 2; q.y += (Math.sign(dy) * under) / 2; }
        }
      }
      if (!moved) break;
    }
    return boxes;
  }

  heads() {
    const heads = draw("defs");
    for (const kind of ["for", "against", "even"]) {
      const tip = draw("path", { d: "M0 0 L8 4 L0 8 z", class: `tip ${kind}` });
      heads.append(draw("marker", { id: `${this.place.dataset.name}-${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 10,
        markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto" }, tip));
    }
    return heads;
  }

  edges(boxes) {
    const { nodes, edges } = this.answer, both = new Set(edges.map((edge) => `${edge.source} ${edge.target}`));
    edges.forEach((edge, number) => {
      if (!boxes.has(edge.source) || !boxes.has(edge.target)) return;
      const d = arc(boxes.get(edge.source), boxes.get(edge.target), both.has(`${edge.target} ${edge.source}`));
      const kind = this.scale.side(edge.weight), share = Math.abs(this.scale.share(edge.weight));
      const path = draw("path", { class: "edge", d, "stroke-width": 2 + 4 * share, "stroke-opacity": kind === "even" ? 0.45 : 0.45 + 0.55 * share,
        "marker-end": `url(#${this.place.dataset.name}-${kind})` });
      const name = `${shown(nodes[edge.source].word)} → ${shown(nodes[edge.target].word)}`;
      const group = draw("g", { class: `link ${kind}`, "data-edge": number, role: "button", tabindex: 0, "aria-pressed": "false",
        "aria-label": `pair ${name}, ${signed(edge.weight)}` },
        draw("title", {}, `${name}: ${signed(edge.weight)}${edge.count > 1 ? `, ${edge.count} times` : ""}. Click to cut it.`),
        draw("path", { class: "wide", d }), path);
      press(group, () => this.on.edge(number));
      group.onmouseenter = group.onfocus = () => this.on.hover([edge.source, edge.target], true);
      group.onmouseleave = group.onblur = () => this.on.hover([edge.source, edge.target], false);
      this.place.append(group);
    });
  }

  bridges(boxes) {
    // Where only folded words stand between two that are shown: a dotted line. It follows the text, so no line is invented.
    const { nodes, edges, words } = this.answer, direct = new Set(edges.map((edge) => `${edge.source} ${edge.target}`)), node = new Map();
    nodes.forEach((one, k) => one.occurrences.forEach((place) => node.set(place, k)));
    let before = null, folded = 0;
    words.forEach((_, place) => {
      const k = node.get(place);
      if (!boxes.has(k)) { folded += 1; return; }
      const pair = `${before} ${k}`;
      if (before !== null && folded && before !== k && !direct.has(pair)) {
        direct.add(pair);
        this.place.append(draw("path", { class: "bridge", d: arc(boxes.get(before), boxes.get(k), false) }));
      }
      [before, folded] = [k, 0];
    });
  }

  nodes(boxes) {
    for (const [number, box] of boxes) {
      const node = this.answer.nodes[number];
      const pill = draw("rect", { x: box.x - box.w / 2, y: box.y - box.h / 2, width: box.w, height: box.h, rx: box.h / 2 });
      const tint = draw("rect", { x: box.x - box.w / 2, y: box.y - box.h / 2, width: box.w, height: box.h, rx: box.h / 2, class: "tint" });
      tint.style.fill = this.scale.colour(node.weight) || "transparent";
      const group = draw("g", { class: `node ${this.scale.side(node.weight)}`, "data-node": number, role: "button", tabindex: 0,
        "aria-pressed": "false", "aria-label": `word ${shown(node.word)}, ${signed(node.weight)}` },
        draw("title", {}, `${shown(node.word)}: ${signed(node.weight)}. Click to take it out.`), pill, tint,
        draw("text", { x: box.x, y: box.y + 5 }, box.name));
      press(group, () => this.on.node(number));
      group.onmouseenter = group.onfocus = () => this.light(number, true);
      group.onmouseleave = group.onblur = () => this.light(number, false);
      this.place.append(group);
    }
  }

  light(number, on) {
    // A word, its neighbours and the arrows between them.
    this.place.classList.toggle("lit", on);
    const near = [number];
    for (const group of this.place.querySelectorAll("[data-edge]")) {
      const { source, target } = this.answer.edges[group.dataset.edge], touches = source === number || target === number;
      group.classList.toggle("near", on && touches);
      if (touches) near.push(source, target);
    }
    for (const k of near) this.place.querySelector(`[data-node="${k}"]`)?.classList.toggle("near", on);
    this.on.hover([number], on);
  }

  fit(boxes) {
    const list = [...boxes.values()];
    if (!list.length) return;
    const left = Math.min(...list.map((box) => box.x - box.w / 2)) - 20, top = Math.min(...list.map((box) => box.y - box.h / 2)) - 20;
    const right = Math.max(...list.map((box) => box.x + box.w / 2)) + 20, bottom = Math.max(...list.map((box) => box.y + box.h / 2)) + 20;
    const width = Math.max(right - left, 280);
    this.whole = { x: left - (width - (right - left)) / 2, y: top, w: width, h: Math.max(bottom - top, 120) };
    const scale = Math.min(1.2, (this.place.clientWidth || 600) / this.whole.w);
    this.place.style.height = `${Math.round(Math.min(Math.max(this.whole.h * scale, 240), 720))}px`;
    this.look({ ...this.whole });
  }

  look(view) {
    this.view = view;
    this.place.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
  }

  zoom(factor, at = [0.5, 0.5]) {
    const { x, y, w, h } = this.view, to = Math.min(Math.max(w * factor, this.whole.w / 8), this.whole.w * 2) / w;
    this.look({ x: x + at[0] * w * (1 - to), y: y + at[1] * h * (1 - to), w: w * to, h: h * to });
  }

  wheel(event) {
    if (!this.view || !(event.ctrlKey || event.metaKey)) return; // a plain wheel scrolls the page
    event.preventDefault();
    const box = this.place.getBoundingClientRect();
    this.zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]);
  }

  grab(event) {
    if (!this.view || event.target.closest("[data-node], [data-edge]")) return;
    const box = this.place.getBoundingClientRect(), from = { ...this.view, cx: event.clientX, cy: event.clientY };
    const scale = Math.max(from.w / box.width, from.h / box.height);
    const move = (now) => this.look({ ...from, x: from.x - (now.clientX - from.cx) * scale, y: from.y - (now.clientY - from.cy) * scale });
    const stop = () => { removeEventListener("pointermove", move); removeEventListener("pointerup", stop); };
    addEventListener("pointermove", move);
    addEventListener("pointerup", stop);
  }

  keys(event) {
    const step = { "+": () => this.zoom(1 / 1.25), "-": () => this.zoom(1.25), 0: () => this.look({ ...this.whole }) }[event.key];
    if (!step || !this.view) return;
    event.preventDefault();
    step();
  }
}

function arc(from, to, bent) {
  // From pill to pill; where there is an arrow back, to one side.
  const [x1, y1] = border(from, to), [x2, y2] = border(to, from), aside = bent ? 0.2 : 0;
  return `M${x1} ${y1} Q${(x1 + x2) / 2 - aside * (y2 - y1)} ${(y1 + y2) / 2 + aside * (x2 - x1)} ${x2} ${y2}`;
}

function border(box, towards) {
  // Where the line between two centres leaves a pill, and a little further.
  const dx = towards.x - box.x, dy = towards.y - box.y;
  const share = Math.min((box.w / 2 + 3) / Math.max(Math.abs(dx), 1e-6), (box.h / 2 + 3) / Math.max(Math.abs(dy), 1e-6), 0.49);
  return [box.x + dx * share, box.y + dy * share];
}
