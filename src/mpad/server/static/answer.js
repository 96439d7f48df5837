// A model's answer on one document: the class, how sure, why, and what if.

import { classColour, find, make, percent, Scale, shortened, shown, signed } from "./dom.js";
import { Graph } from "./graph.js";

const MOST_BARS = 6, MOST_STEPS = 7;
const MEANING = {
  gradients: "Integrated gradients: a word's number is its share of how far the words together raise the log-odds of the class. All of them, from the " +
    "prediction without words, add up to the prediction. Pairs have a sum of their own, for the arrows between words.",
  occlusion: "A word's number is how far the log-odds of the class fall when it is taken out.",
  attention: "A word's number is the share of the network's attention that it gets: where it looked, not what it thought of it.",
};

const labelsOf = ({ labels, predicted }) => labels ?? [predicted]; // of many labels, each has a probability of its own

export class Panel {
  constructor(number, context) {
    Object.assign(this, { number, context, words: new Set(), edges: new Set() });
    this.element = find("panel").content.cloneNode(true).firstElementChild;
    this.part = (name) => this.element.querySelector(`.${name}`);
    this.part("graph").dataset.name = `graph${number}`;
    for (const model of context.models) this.part("model").append(make("option", {}, model.name));
    this.part("model").selectedIndex = Math.min(number, context.models.length - 1);
    this.part("model-label").hidden = context.models.length < 2;
    this.part("model").onchange = () => context.attempt(() => context.again(this));
    this.part("reset").onclick = () => context.mirror((panel) => panel.putBack());
    this.part("threshold").oninput = () => this.paint();
    this.part("why-button").onclick = () => this.explainMethod();
    this.graph = new Graph(this.part("graph"), {
      edge: (edge) => this.toggleEdge(edge), node: (node) => this.toggleWords(this.shownAnswer.nodes[node].occurrences.map((k) => this.places[k])),
      hover: (nodes, on) => this.outline(nodes, on),
    });
    this.part("folded").onclick = () => { this.graph.all = !this.graph.all; this.paint(); };
    this.part("zoom-in").onclick = () => this.graph.zoom(1 / 1.3);
    this.part("zoom-out").onclick = () => this.graph.zoom(1.3);
    this.part("zoom-all").onclick = () => this.graph.look({ ...this.graph.whole });
  }

  get model() {
    return this.context.models.find((model) => model.name === this.part("model").value);
  }

  colour(label) {
    return classColour(Math.max(this.model.classes.indexOf(label), 0));
  }

  // ── Asking ──

  async classify(text) {
    this.element.classList.add("stale"); // until there is an answer, what is shown is another document's
    const { limits, ask, method } = this.context;
    const long = Array.from(text).length > Math.min(limits.explained, limits.characters);
    const explains = this.model.explains && !long;
    const answer = explains
      ? await ask("explain", { text, model: this.model.name, method: method() })
      : await this.labelled(text, this.model.explains ? "Too long to be explained here: only its class." : "This model has no graph of words to explain.");
    Object.assign(this, { text, answer, shownAnswer: answer, words: new Set(), edges: new Set(), letters: Array.from(text), chosen: undefined });
    this.places = answer.words.map((_, k) => k);
    this.element.classList.toggle("plain", !explains);
    this.show(labelsOf(answer), answer.probabilities);
    this.element.classList.remove("stale");
  }

  async labelled(text, note) {
    const [{ label, labels, probabilities }] = (await this.context.ask("predict", { texts: [text], model: this.model.name })).predictions;
    return { words: [], sentences: [], nodes: [], edges: [], keywords: [], phrases: [], method: "", note, label, predicted: label, labels, probabilities };
  }

  async speaksFor(label) {
    // The same prediction, explained for a class that somebody chose; what was taken out stays out.
    const { ask, method } = this.context, { text } = this;
    const answer = await ask("explain", { text, model: this.model.name, method: method(), label });
    if (text !== this.text) return;
    Object.assign(this, { answer, shownAnswer: answer, places: answer.words.map((_, k) => k), chosen: label });
    await this.withoutParts();
  }

  async withoutParts() {
    // Words that are gone change everything, so all of it is requested again; a cut arrow changes the answer alone.
    const asked = (this.asked = (this.asked ?? 0) + 1), { text } = this, { ask, method } = this.context, model = this.model.name;
    const left = this.words.size
      ? await ask("explain", { text, model, method: method(), label: this.chosen, without: [...this.words] }) // without a choice, the class that is predicted now
      : this.answer;
    let { probabilities } = left, names = labelsOf(left);
    if (this.edges.size) {
      const edges = [...this.edges].map((pair) => { const [source, target] = pair.split("\u0000"); return { source, target }; });
      const [result] = (await ask("what-if", { text, words: [...this.words], edges, model })).predictions;
      [names, probabilities] = [result.labels ?? [result.label], result.probabilities];
    }
    if (asked !== this.asked) return; // a later click has been answered, or will be
    this.shownAnswer = left;
    this.places = this.answer.words.map((_, k) => k).filter((k) => !this.words.has(k));
    this.show(names, probabilities);
  }

  // ── Taking parts out ──

  toggleWords(numbers) {
    const out = numbers.every((number) => this.words.has(number));
    const starts = numbers.map((number) => this.answer.words[number].start);
    this.context.mirror((panel) => panel.take(starts, out));
  }

  take(starts, back) {
    if (!this.answer) return undefined;
    this.answer.words.forEach((word, number) => {
      if (starts.includes(word.start)) back ? this.words.delete(number) : this.words.add(number);
    });
    this.mark();
    return this.withoutParts();
  }

  toggleEdge(number) {
    const { nodes, edges } = this.shownAnswer, { source, target } = edges[number];
    const pair = `${nodes[source].word}\u0000${nodes[target].word}`, out = this.edges.has(pair);
    this.context.mirror((panel) => panel.cut(pair, out));
  }

  cut(pair, back) {
    if (!this.answer) return undefined;
    back ? this.edges.delete(pair) : this.edges.add(pair);
    this.mark();
    return this.withoutParts();
  }

  putBack() {
    this.words.clear();
    this.edges.clear();
    this.mark();
    return this.withoutParts();
  }

  mark() {
    const put = (element, out) => { element.classList.toggle("out", out); element.setAttribute("aria-pressed", String(out)); };
    for (const span of this.part("text").querySelectorAll(".word")) put(span, this.words.has(Number(span.dataset.word)));
    for (const group of this.part("graph").querySelectorAll("[data-edge]")) {
      const { nodes, edges } = this.shownAnswer, { source, target } = edges[group.dataset.edge];
      put(group, this.edges.has(`${nodes[source].word}\u0000${nodes[target].word}`));
    }
    this.part("reset").hidden = !this.words.size && !this.edges.size;
  }

  // ── Showing ──

  show(names, probabilities) {
    const before = this.words.size || this.edges.size ? this.answer.probabilities : null;
    const parts = names.flatMap((name) => {
      const dot = make("span", { class: "dot" });
      dot.style.background = this.colour(name);
      return [make("span", { class: "named" }, dot, name), " ", probabilities ? make("span", { class: "sure" }, `${percent(probabilities[name])} sure `) : ""];
    });
    this.part("answer").replaceChildren(...(parts.length ? parts : ["no label"]));
    this.bars(probabilities, before);
    this.paint();
  }

  bars(probabilities, before) {
    const place = this.part("bars");
    place.replaceChildren();
    if (!probabilities) return place.append(make("p", { class: "quiet" }, "This model gives a class and no probabilities."));
    const ranked = Object.entries(probabilities).sort((a, b) => b[1] - a[1]).slice(0, MOST_BARS);
    const more = Object.keys(probabilities).length - ranked.length;
    for (const [label, p] of ranked) {
      const fill = make("i", { class: "fill" }), track = make("div", { class: "track" }, fill);
      fill.style.width = `${100 * p}%`;
      fill.style.background = this.colour(label);
      if (before) {
        const ghost = make("i", { class: "ghost", title: `before: ${percent(before[label])}` });
        ghost.style.left = `${100 * before[label]}%`;
        track.append(ghost);
      }
      const name = this.answer.words.length
        ? make("button", { type: "button", class: "name", title: `what supports “${label}”`, "aria-pressed": String(label === this.shownAnswer.label), onclick: () => this.context.attempt(() => this.speaksFor(label)) }, label)
        : make("span", { class: "name" }, label);
      place.append(name, track, make("span", { class: "number", "data-p": p }, percent(p)));
    }
    if (more > 0) place.append(make("span", { class: "name quiet" }, `${more} more`));
    return undefined;
  }

  paint() {
    const answer = this.shownAnswer, threshold = Number(this.part("threshold").value) / 100;
    this.scale = new Scale([...answer.words, ...answer.edges].map((part) => part.weight), threshold);
    this.drawText();
    const folded = answer.nodes.length ? this.graph.show(answer, this.scale) : this.part("graph").replaceChildren() ?? 0;
    this.refocus?.focus();
    this.part("folded").hidden = !folded && !this.graph.all;
    this.part("folded").textContent = this.graph.all ? "fold small words away" : `show ${folded} small words`;
    this.steps();
    this.part("class-name").textContent = answer.label;
    this.element.classList.toggle("looked", answer.method === "attention");
    this.part("meaning").textContent = MEANING[answer.method] ?? "";
    this.part("most").textContent = signed(this.scale.top);
    this.part("least").textContent = answer.method === "attention" ? "0" : signed(-this.scale.top);
    this.part("note").textContent = answer.note;
    const said = [["Words", answer.keywords], ["Phrases", answer.phrases]].filter(([, list]) => list.length);
    const most = answer.method === "attention" ? "the network looked at most" : `that support “${answer.label}” most`;
    this.part("keywords").textContent = said.map(([name, list]) => `${name} ${most}: ${list.join(", ")}.`).join(" ");
    this.mark();
    this.context.painted(this);
  }

  drawText() {
    // All words of the document; those that are out stay readable, crossed out.
    const place = this.part("text"), { letters, answer } = this, weights = new Map(this.shownAnswer.words.map((word) => [word.start, word]));
    const between = (start, end) => letters.slice(start, end).join("");
    const focused = document.activeElement?.closest?.(".text") === place ? document.activeElement.dataset.word : null;
    place.replaceChildren();
    const many = answer.sentences.length > 1, paragraphs = many ? answer.sentences : [{ start: 0, end: letters.length }];
    let next = 0, cursor = 0;
    paragraphs.forEach((sentence, number) => {
      const end = number + 1 < paragraphs.length ? paragraphs[number + 1].start : letters.length, paragraph = make("p", { dir: "auto" });
      while (next < answer.words.length && answer.words[next].start < end) {
        const word = answer.words[next];
        if (word.start >= cursor) {
          paragraph.append(between(cursor, word.start), this.occurrence(weights.get(word.start), next, between(word.start, word.end)));
          cursor = word.end;
        }
        next += 1;
      }
      paragraph.append(between(cursor, end));
      cursor = end;
      place.append(paragraph);
    });
    const first = (focused && place.querySelector(`[data-word="${focused}"]`)) || place.querySelector(".word");
    if (first) first.tabIndex = 0;
    this.refocus = focused ? first : null; // once the graph is drawn, too
    place.onkeydown = (event) => walk(place, event);
  }

  occurrence(word, number, said) {
    const weight = word ? word.weight : 0;
    const linear = word?.potential == null ? "" : `, ${signed(word.potential)} of it by the word alone`;
    const known = this.answer.words[number].known !== false, unknown = known ? "" : " The model does not know this word.";
    const span = make("span", { class: `word ${this.scale.side(weight)}${known ? "" : " unknown"}`, role: "button", tabindex: "-1", "aria-pressed": "false", "data-word": number,
      title: word ? `${signed(weight)}${linear}.${unknown} Click to take it out.` : "taken out: click to put it back" }, said);
    span.style.background = word ? this.scale.colour(weight) : "";
    span.onclick = () => this.toggleWords([number]);
    span.onmouseenter = span.onfocus = () => this.lightWord(number, true);
    span.onmouseleave = span.onblur = () => this.lightWord(number, false);
    return span;
  }

  lightWord(number, on) {
    const place = this.places.indexOf(number), node = this.shownAnswer.nodes.findIndex((one) => one.occurrences.includes(place));
    if (node >= 0 && this.part("graph").querySelector(`[data-node="${node}"]`)) this.graph.light(node, on);
  }

  outline(nodes, on) {
    for (const node of nodes) {
      for (const place of this.shownAnswer.nodes[node]?.occurrences ?? []) { // a node that was just redrawn away has none
        this.part("text").querySelector(`[data-word="${this.places[place]}"]`)?.classList.toggle("shown", on);
      }
    }
  }

  steps() {
    // From the answer while the words are faded out, step by step, to the answer: the weights add up, by gradients.
    const place = this.part("steps"), { words, method, label, probabilities } = this.shownAnswer;
    place.replaceChildren();
    this.part("steps-title").hidden = method !== "gradients" || !words.length;
    if (method !== "gradients" || !words.length) return;
    const sums = new Map();
    for (const word of words) sums.set(shown(word.word), (sums.get(shown(word.word)) ?? 0) + word.weight);
    const ranked = [...sums].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])), top = ranked.slice(0, MOST_STEPS);
    const rest = ranked.slice(MOST_STEPS).reduce((sum, [, weight]) => sum + weight, 0);
    const p = Math.min(Math.max(probabilities[label], 1e-9), 1 - 1e-9), end = Math.log(p / (1 - p));
    const start = end - ranked.reduce((sum, [, weight]) => sum + weight, 0);
    const parts = [...top, ...(ranked.length > MOST_STEPS ? [[`${ranked.length - MOST_STEPS} others`, rest]] : [])];
    let at = start;
    const spans = parts.map(([name, weight]) => { const from = at; at += weight; return [name, weight, from, at]; });
    const low = Math.min(start, end, ...spans.map((span) => span[3])), high = Math.max(start, end, ...spans.map((span) => span[3]));
    const across = (value) => (high - low < 1e-9 ? 50 : (100 * (value - low)) / (high - low));
    const odds = (value) => percent(1 / (1 + Math.exp(-value)));
    const row = (name, bar, number) => place.append(make("span", { class: "name" }, name), make("div", { class: "stretch" }, bar), make("span", { class: "number" }, number));
    const mark = (value) => { const tick = make("i", { class: "tick" }); tick.style.left = `${across(value)}%`; return tick; };
    row("without words", mark(start), odds(start));
    for (const [name, weight, from, to] of spans) {
      const bar = make("i", { class: `step ${weight >= 0 ? "for" : "against"}` });
      bar.style.left = `${across(Math.min(from, to))}%`;
      bar.style.width = `${Math.max(Math.abs(across(to) - across(from)), 0.4)}%`;
      row(shortened(name, 22), bar, signed(weight));
    }
    row("this text", mark(end), odds(end));
  }

  explainMethod() {
    const place = this.part("meaning"), open = place.hidden;
    place.hidden = !open;
    this.part("why-button").setAttribute("aria-expanded", String(open));
  }
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

export function markDifferences(panels) {
  // Words that two models weigh apart by more than half of their scale, or to the other side.
  const [one, other] = panels;
  const shares = (panel) => new Map(panel.shownAnswer.words.map((word) => [word.start, panel.scale.share(word.weight)]));
  const [first, second] = [shares(one), shares(other)];
  const same = one.answer.predicted === other.answer.predicted;
  for (const panel of panels) {
    for (const span of panel.part("text").querySelectorAll(".word")) {
      const start = panel.answer.words[span.dataset.word].start, sign = same ? 1 : -1; // weights of two classes point apart
      const apart = Math.abs((first.get(start) ?? 0) - sign * (second.get(start) ?? 0));
      span.classList.toggle("differs", apart > 0.5);
    }
  }
}
