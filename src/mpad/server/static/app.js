// The page: asks the server, and shows what it says.

import { parse, format, textColumn } from "./csv.js";
import { bars, graph, make, text as drawText } from "./draw.js";

const find = (name) => document.getElementById(name);
const CHUNK = 200;
let models = [], panels = [], limits = {};

async function ask(path, body) {
  const headers = {};
  if (find("key").value) headers["x-api-key"] = find("key").value;
  if (body) headers["content-type"] = "application/json";
  const response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (response.status === 401) find("key-label").hidden = false;
  if (!response.ok) throw new Error(answer.detail);
  return answer;
}

function say(what, problem = false) {
  find("said").textContent = what;
  find("said").classList.toggle("problem", problem);
}

async function attempt(work) {
  try {
    await work();
  } catch (error) {
    say(error.message || "the server does not answer", true);
  }
}

class Panel {
  constructor(number) {
    this.element = find("panel").content.cloneNode(true).firstElementChild;
    this.part = (name) => this.element.querySelector(`.${name}`);
    this.part("graph").dataset.name = `graph${number}`;
    for (const model of models) this.part("model").append(make("option", {}, model.name));
    this.part("model").selectedIndex = Math.min(number, models.length - 1);
    this.part("model").onchange = () => attempt(() => this.classify(this.text));
    this.part("reset").onclick = () => attempt(() => this.putBack());
    find("panels").append(this.element);
  }

  get model() {
    return this.part("model").value;
  }

  async classify(text) {
    this.element.classList.add("stale"); // until there is an answer, what is shown is another document's
    const explains = models.find((model) => model.name === this.model).explains;
    const long = Array.from(text).length > Math.min(limits.explained, limits.characters);
    const answer = explains && !long
      ? await ask("explain", { text, model: this.model, method: find("method").value })
      : await this.labelled(text, explains ? "Too long to be explained here: only its label." : "This model has no graph of words to explain.");
    Object.assign(this, { text, answer, words: new Set(), edges: new Set() });
    this.show();
    this.element.classList.remove("stale");
  }

  async labelled(text, note) {
    const [{ label, probabilities }] = (await ask("predict", { texts: [text], model: this.model })).predictions;
    return { words: [], sentences: [], nodes: [], edges: [], keywords: [], phrases: [], method: "", note, label, predicted: label,
      probabilities: probabilities ?? { [label]: 1 } };
  }

  show() {
    const { answer } = this;
    this.letters = Array.from(this.text);
    this.tell(answer.predicted, answer.probabilities);
    bars(this.part("bars"), answer.probabilities);
    this.part("legend").textContent = !answer.method ? "" : answer.method === "attention"
      ? "By attention: blue is where it looked."
      : `By ${answer.method}: blue speaks for “${answer.label}”, orange and dotted against it. Click a word to take it out.`;
    drawText(this.part("text"), this.letters, answer, (word) => this.toggle(this.words, [word]));
    graph(this.part("graph"), answer, (edge) => this.toggle(this.edges, [edge]),
      (node) => this.toggle(this.words, answer.nodes[node].occurrences), (node, on) => this.outline(node, on));
    this.part("note").textContent = answer.note;
    const said = [["Words", answer.keywords], ["Phrases", answer.phrases]].filter(([, found]) => found.length);
    this.part("keywords").textContent = said.map(([name, found]) => `${name} that speak most for it: ${found.join(", ")}.`).join(" ");
    this.part("reset").hidden = true;
  }

  tell(label, probabilities) {
    this.part("answer").replaceChildren(label, " ", make("small", {}, (probabilities[label] ?? 1).toFixed(3)));
  }

  outline(node, on) {
    for (const word of this.answer.nodes[node].occurrences) {
      const span = this.part("text").querySelector(`[data-word="${word}"]`);
      if (span) span.classList.toggle("shown", on);
    }
  }

  toggle(chosen, numbers) {
    const out = numbers.every((number) => chosen.has(number));
    for (const number of numbers) out ? chosen.delete(number) : chosen.add(number);
    this.mark();
    return attempt(() => this.ifWithout());
  }

  putBack() {
    this.words.clear();
    this.edges.clear();
    this.mark();
    return this.ifWithout();
  }

  mark() {
    const put = (element, out) => {
      element.classList.toggle("out", out);
      element.setAttribute("aria-pressed", String(out));
    };
    for (const span of this.part("text").querySelectorAll(".word")) put(span, this.words.has(Number(span.dataset.word)));
    for (const group of this.part("graph").querySelectorAll("[data-edge]")) put(group, this.edges.has(Number(group.dataset.edge)));
    for (const group of this.part("graph").querySelectorAll("[data-node]")) {
      put(group, this.answer.nodes[group.dataset.node].occurrences.every((word) => this.words.has(word)));
    }
    this.part("reset").hidden = !this.words.size && !this.edges.size;
  }

  async ifWithout() {
    const asked = (this.asked = (this.asked ?? 0) + 1);
    const edges = [...this.edges].map((number) => {
      const { source, target } = this.answer.edges[number];
      return { source: this.answer.nodes[source].word, target: this.answer.nodes[target].word };
    });
    const body = { text: this.text, words: [...this.words], edges, model: this.model };
    const [{ label, probabilities }] = (await ask("what-if", body)).predictions;
    if (asked !== this.asked) return; // a later click has been answered, or will be
    this.tell(label, probabilities);
    bars(this.part("bars"), probabilities, this.answer.probabilities);
  }
}

function arrange(n) {
  find("panels").replaceChildren();
  panels = Array.from({ length: n }, (_, number) => new Panel(number));
}

async function classify() {
  const text = find("text").value;
  if (!text.trim()) return say("Write or paste a document first.");
  const wanted = find("compare").checked ? 2 : 1;
  if (panels.length !== wanted) arrange(wanted);
  say("Reading …");
  for (const panel of panels) await panel.classify(text);
  say("");
}

async function read(file) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name}: not UTF-8; save it as UTF-8 first`);
  }
}

async function score(file) {
  find("scoring").hidden = true;
  find("download").hidden = true;
  find("progress").value = 0;
  if (!models.length) await start();
  const rows = parse(await read(file));
  if (rows.length < 2) throw new Error(`${file.name}: expected a first row of names and at least one document`);
  const uneven = rows.findIndex((row) => row.length > rows[0].length);
  if (uneven > 0) throw new Error(`${file.name}: row ${uneven + 1} has ${rows[uneven].length} cells, the first row ${rows[0].length}`);
  for (const row of rows) while (row.length < rows[0].length) row.push("");
  const column = textColumn(rows), model = panels[0] ? panels[0].model : models[0].name;
  const classes = models.find((one) => one.name === model).classes;
  find("scoring").hidden = false;
  const label = rows[0].includes("label") ? "predicted label" : "label";
  const scored = [[...rows[0], label, ...classes.map((name) => `p(${name})`)]];
  let left = 0, done = 1;
  while (done < rows.length) {
    say(`Scoring ${file.name}, column “${rows[0][column]}”: ${done - 1} of ${rows.length - 1}`);
    const part = portion(rows, done, column);
    const fits = part.filter((row) => fit(row[column]));
    const { predictions } = await ask("predict", { texts: fits.map((row) => row[column]), model });
    for (const row of part) {
      const found = fit(row[column]) ? predictions.shift() : { label: "" };
      left += !found.label;
      scored.push([...row, found.label, ...classes.map((name) => (found.probabilities ? found.probabilities[name].toFixed(6) : ""))]);
    }
    done += part.length;
    find("progress").value = (done - 1) / (rows.length - 1);
  }
  const link = find("download");
  if (link.href.startsWith("blob:")) URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(new Blob([format(scored)], { type: "text/csv" }));
  link.hidden = false;
  const missed = left ? ` ${left} have no label: they are too long, or hold the character NUL.` : "";
  say(`${rows.length - 1} documents scored by ${model}.${missed}`);
  link.focus();
}

const fit = (text) => Array.from(text).length <= limits.characters && new Blob([text]).size < limits.body / 2 && !text.includes("\0");

function portion(rows, from, column) {
  // As many rows as one request may hold; JSON at most doubles what it quotes, but for control characters.
  let size = 0, to = from;
  while (to < rows.length && to - from < Math.min(CHUNK, limits.documents)) {
    size += fit(rows[to][column]) ? 8 + JSON.stringify(rows[to][column]).length * 3 : 0;
    if (size > limits.body && to > from) break;
    to += 1;
  }
  return rows.slice(from, to);
}

async function take(file) {
  if (/\.csv$/i.test(file.name) || file.type === "text/csv") return score(file);
  find("text").value = await read(file);
  return classify();
}

async function start() {
  const info = await ask("info");
  [models, limits] = [info.models, info.limits];
  find("compare-label").hidden = models.length < 2;
  say("");
}

find("ask").onsubmit = (event) => {
  event.preventDefault();
  attempt(async () => {
    if (!models.length) await start();
    await classify();
  });
};
find("text").onkeydown = (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("ask").requestSubmit();
};
find("csv").onchange = () => find("csv").files[0] && attempt(() => score(find("csv").files[0]));
find("method").onchange = () => panels.length && attempt(classify);
find("compare").onchange = () => find("text").value.trim() && attempt(classify);
find("text").ondragover = (event) => {
  event.preventDefault();
  find("text").classList.add("over");
};
find("text").ondragleave = () => find("text").classList.remove("over");
find("text").ondrop = (event) => {
  find("text").classList.remove("over");
  const [file] = event.dataTransfer.files;
  if (!file) return;
  event.preventDefault();
  attempt(() => take(file));
};
find("theme").onclick = () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  const then = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = then;
  find("theme").textContent = now;
  find("theme").setAttribute("aria-pressed", String(then === "dark"));
};
attempt(start);
