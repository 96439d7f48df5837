// What an answer looks like: bars, coloured text, and the graph of words. Documents only ever become text nodes.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 760, HEIGHT = 480, MARGIN = 60, FAINT = 0.02, MOST_BARS = 6;

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  return dress(element, attributes, children);
}

function draw(name, attributes = {}, ...children) {
  return dress(document.createElementNS(SVG, name), attributes, children);
}

function dress(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const largest = (weights) => weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
const side = (share) => (Math.abs(share) < FAINT ? "even" : share > 0 ? "for" : "against");
export const shown = (word) => (/^\\.$/.test(word) ? word[1] : word); // Kim's tokenizer has a backslash before brackets
const shortened = (text, most) => (text.length <= most ? text : text.slice(0, most - 1) + "…");
const signed = (weight) => (weight >= 0 ? "+" : "−") + Math.abs(weight).toFixed(3);

export function bars(place, probabilities, before) {
  const ranked = Object.entries(probabilities).sort((a, b) => b[1] - a[1]).slice(0, MOST_BARS);
  place.replaceChildren();
  for (const [label, p] of ranked) {
    const bar = make("div", { class: "bar" });
    bar.style.width = `${Math.max(100 * p, 0.3)}%`;
    const number = make("span", { class: "number" }, p.toFixed(3));
    if (before && Math.abs(p - before[label]) >= 0.0005) {
      number.append(make("span", { class: "moved" }, ` (${signed(p - before[label])})`));
    }
    place.append(make("span", {}, label), make("div", {}, bar), number);
  }
}

export function text(place, letters, answer, toggle) {
  // letters: the document's code points, in which words are counted.
  const top = largest(answer.words.map((word) => word.weight));
  const many = answer.sentences.length > 1;
  const strongest = largest(answer.sentences.map((sentence) => sentence.weight));
  const between = (start, end) => letters.slice(start, end).join("");
  place.replaceChildren();
  place.classList.toggle("plain", !many);
  let next = 0, cursor = 0;
  const paragraphs = many ? answer.sentences : [{ start: 0, end: letters.length }];
  paragraphs.forEach((sentence, number) => {
    const end = number + 1 < paragraphs.length ? paragraphs[number + 1].start : letters.length;
    const paragraph = make("p", { dir: "auto" });
    if (many) paragraph.append(share(sentence.weight, strongest));
    while (next < answer.words.length && answer.words[next].start < end) {
      const word = answer.words[next];
      if (word.start >= cursor) {
        paragraph.append(between(cursor, word.start), occurrence(word, next, top, between(word.start, word.end), toggle));
        cursor = word.end;
      }
      next += 1;
    }
    paragraph.append(between(cursor, end));
    cursor = end;
    place.append(paragraph);
  });
  const first = place.querySelector(".word");
  if (first) first.tabIndex = 0;
  place.onkeydown = (event) => walk(place, event);
}

function share(weight, strongest) {
  const bar = make("i");
  bar.style.width = `${strongest ? (100 * Math.abs(weight)) / strongest : 0}%`;
  bar.style.background = `rgb(var(--${weight >= 0 ? "for" : "against"}))`;
  return make("span", { class: "share", title: "weight of the sentence" }, signed(weight), bar);
}

function occurrence(word, number, top, shown, toggle) {
  const part = top ? word.weight / top : 0;
  const span = make("span", {
    class: `word ${side(part)}`, role: "button", tabindex: "-1", "aria-pressed": "false", "data-word": number,
    title: `${signed(word.weight)}: click to take it out`,
  }, shown);
  if (Math.abs(part) >= FAINT) span.style.background = `rgba(var(--${side(part)}), ${(0.75 * Math.abs(part)).toFixed(2)})`;
  span.onclick = () => toggle(number);
  return span;
}

function walk(place, event) {
  // One stop for Tab; arrows go from word to word, Enter and Space take one out.
  const words = [...place.querySelectorAll(".word")], at = words.indexOf(document.activeElement);
  if (at < 0) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    words[at].click();
    return;
  }
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -words.length, End: words.length }[event.key];
  if (!step) return;
  event.preventDefault();
  const to = words[Math.min(Math.max(at + step, 0), words.length - 1)];
  words[at].tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

const across = (node) => [MARGIN + node.x * (WIDTH - 2 * MARGIN), MARGIN / 2 + node.y * (HEIGHT - 1.3 * MARGIN)];

export function graph(place, answer, takeOutEdge, takeOutWord, show) {
  const topEdge = largest(answer.edges.map((edge) => edge.weight)), topNode = largest(answer.nodes.map((node) => node.weight));
  const most = Math.max(1, ...answer.edges.map((edge) => edge.count));
  const both = new Set(answer.edges.map((edge) => `${edge.source} ${edge.target}`));
  place.replaceChildren();
  const heads = draw("defs");
  for (const kind of ["for", "against", "even"]) {
    const tip = draw("path", { d: "M0 0 L8 4 L0 8 z" });
    tip.style.fill = `rgb(var(--${kind}))`;
    heads.append(draw("marker", { id: `${place.dataset.name}-${kind}`, viewBox: "0 0 8 8", refX: 4, refY: 4, markerWidth: 9,
      markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, tip));
  }
  place.append(heads);
  answer.edges.forEach((edge, number) => {
    const part = topEdge ? edge.weight / topEdge : 0, kind = side(part);
    const [from, to] = [answer.nodes[edge.source], answer.nodes[edge.target]];
    const d = arc(from, to, both.has(`${edge.target} ${edge.source}`));
    const path = draw("path", { class: "edge", d, "stroke-width": 1.5 + (4 * (edge.count - 1)) / most,
      "stroke-opacity": 0.25 + 0.75 * Math.abs(part), "marker-end": `url(#${place.dataset.name}-${kind})` });
    path.style.stroke = `rgb(var(--${kind}))`;
    const name = `${shown(from.word)} → ${shown(to.word)}`;
    const group = draw("g", { class: kind, "data-edge": number, role: "button", tabindex: 0, "aria-pressed": "false",
      "aria-label": `edge ${name}, ${signed(edge.weight)}` },
      draw("title", {}, `${name}: ${signed(edge.weight)}, ${edge.count} times`), draw("path", { class: "wide", d }), path);
    press(group, () => takeOutEdge(number));
    place.append(group);
  });
  answer.nodes.forEach((node, number) => {
    const part = topNode ? node.weight / topNode : 0, [x, y] = across(node);
    const circle = draw("circle", { cx: x, cy: y, r: 4 + 7 * Math.abs(part), "fill-opacity": 0.35 + 0.65 * Math.abs(part) });
    circle.style.fill = `rgb(var(--${side(part)}))`;
    const group = draw("g", { class: `node ${side(part)}`, "data-node": number, role: "button", tabindex: 0,
      "aria-pressed": "false", "aria-label": `word ${shown(node.word)}, ${signed(node.weight)}` },
      draw("title", {}, `${shown(node.word)}: ${signed(node.weight)}, ${node.occurrences.length} times`), circle,
      draw("text", { x, y: y + 20 }, shortened(shown(node.word), 24)));
    press(group, () => takeOutWord(number));
    group.onmouseenter = group.onfocus = () => show(number, true);
    group.onmouseleave = group.onblur = () => show(number, false);
    place.append(group);
  });
}

function press(element, action) {
  element.onclick = action;
  element.onkeydown = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      action();
    }
  };
}

function arc(from, to, bent) {
  const [x1, y1] = across(from);
  let [x2, y2] = across(to);
  const length = Math.max(Math.hypot(x2 - x1, y2 - y1), 1e-6);
  x2 -= (13 * (x2 - x1)) / length;
  y2 -= (13 * (y2 - y1)) / length;
  const aside = bent ? 0.18 : 0;
  return `M${x1} ${y1} Q${(x1 + x2) / 2 - aside * (y2 - y1)} ${(y1 + y2) / 2 + aside * (x2 - x1)} ${x2} ${y2}`;
}
