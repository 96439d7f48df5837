// The page: asks the server, and shows what it says. What is typed goes to this server and nowhere else.

import { markDifferences, Panel } from "./answer.js";
import { classColour, find, make, percent, shortened } from "./dom.js";
import { Workspace } from "./workspace.js";

let panels = [], last = "";
const context = { models: [], limits: {}, ask, say, attempt, mirror, again, painted, method: () => find("method").value, show, first: () => (panels[0] ?? { model: context.models[0] }).model.name };
const workspace = new Workspace(context);

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

// ── Answers ──

function arrange(n) {
  while (panels.length > n) panels.pop().element.remove();
  while (panels.length < n) {
    panels.push(new Panel(panels.length, context));
    if (panels.length === 1) panels[0].part("model").value = find("model").value;
    find("panels").append(panels.at(-1).element);
  }
  if (n > 1 && panels[0].model === panels[1].model) panels[1].part("model").selectedIndex = context.models.findIndex((model) => model !== panels[0].model);
  find("panels").classList.toggle("two", n > 1);
}

async function classify() {
  const text = find("text").value;
  if (!text.trim()) return say("Write or paste a document first.");
  arrange(find("compare").checked ? 2 : 1);
  find("welcome").hidden = true;
  say("Reading …");
  last = text;
  await Promise.all(panels.map((panel) => panel.classify(text)));
  say("");
  remember(text);
}

async function again(panel) {
  await panel.classify(last);
  remember(last);
}

async function show(text, model) {
  // A row of a file: the table stays in sight, the explanation is drawn below it.
  find("text").value = text;
  arrange(find("compare").checked ? 2 : 1);
  panels[0].part("model").value = model;
  await attempt(classify);
}

function mirror(change) {
  return attempt(() => Promise.all(panels.map(change)));
}

function painted() {
  if (panels.length === 2 && panels.every((panel) => panel.scale && panel.text === last)) markDifferences(panels);
}

// ── The address holds the text behind its #, which browsers send to nobody ──

function remember(text) {
  const model = context.models.length > 1 ? `&model=${encodeURIComponent(panels[0].model.name)}` : "";
  history.replaceState(null, "", text.length <= 8000 ? `#text=${encodeURIComponent(text)}${model}` : " ");
}

function recalled() {
  const held = new URLSearchParams(location.hash.slice(1));
  if (!held.get("text")) return undefined;
  if (context.models.some((model) => model.name === held.get("model"))) {
    arrange(1);
    panels[0].part("model").value = held.get("model");
  }
  find("text").value = held.get("text");
  const missing = held.get("model") && !context.models.some((model) => model.name === held.get("model"));
  return classify().then(() => missing && say(`There is no model “${held.get("model")}” here: ${panels[0].model.name} answers.`));
}

// ── Before anything is asked: what the model is, and documents to try ──

function welcome() {
  const model = context.models[Math.max(find("model").selectedIndex, 0)], { card } = model;
  const facts = [
    ["classes", `${model.classes.length}: ${shortened(model.classes.join(", "), 90)}`],
    ["kind", [model.kind, model.variant && model.variant !== model.kind ? model.variant : "", card.members ? `${card.members} networks` : ""].filter(Boolean).join(", ")],
    ["trained", card.trained && `${card.trained.slice(0, 10)}${card.documents ? `, on ${card.documents.toLocaleString("en")} documents` : ""}`],
    ["held-out accuracy", card.validation_accuracy && `${percent(card.validation_accuracy)}${card.validation_accuracy_low
      ? ` (95 % interval ${percent(card.validation_accuracy_low)} to ${percent(card.validation_accuracy_high)})` : ""}${card.validation_accuracy_tfidf_svm
      ? `, TF-IDF + linear SVM ${percent(card.validation_accuracy_tfidf_svm)}` : ""}${card.held_out ? `, ${card.held_out.toLocaleString("en")} documents` : ""}`],
    ["held-out micro-F1", card.validation_micro_f1 && `${percent(card.validation_micro_f1)}${card.held_out ? `, ${card.held_out.toLocaleString("en")} documents` : ""}`],
    ["size", model.megabytes && `${model.megabytes} MB${model.words ? `, ${model.words.toLocaleString("en")} words` : ""}`],
  ].filter(([, value]) => value);
  find("card").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  find("card-name").textContent = model.name;
  const spread = []; // one of each class before a second of any
  for (const round of [0, 1, 2]) {
    const seen = new Map();
    for (const one of model.examples) { const k = seen.get(one.label) ?? 0; seen.set(one.label, k + 1); if (k === round) spread.push(one); }
  }
  const cards = spread.map(({ label, text }) => {
    const dot = make("i", { class: "dot" });
    dot.style.background = classColour(Math.max(model.classes.indexOf(label), 0));
    return make("button", { type: "button", class: "example", onclick: () => { find("text").value = text; attempt(classify); } },
      make("b", {}, dot, label), shortened(text, 160));
  });
  find("examples").replaceChildren(...cards.slice(0, 9));
  find("more-examples").hidden = cards.length <= 9;
  find("more-examples").onclick = () => { find("examples").append(...cards.slice(9)); find("more-examples").hidden = true; };
  find("examples-title").hidden = !model.examples.length;
  find("welcome").hidden = panels.length > 0;
}

async function start() {
  const info = await ask("info");
  Object.assign(context, { models: info.models, limits: info.limits });
  find("compare-label").hidden = find("model-label").hidden = info.models.length < 2;
  find("model").replaceChildren(...info.models.map((model) => make("option", {}, model.name)));
  say("");
  welcome();
  await recalled();
}

// ── Files ──

async function read(file) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name}: not UTF-8; save it as UTF-8 first`);
  }
}

async function take(file) {
  if (!context.models.length) await start();
  if (/\.(xlsx?|ods|jsonl?|parquet|gz|zip|pdf|docx?)$/i.test(file.name)) throw new Error(`${file.name}: this page reads CSV, TSV and plain text; save it as one of these, or use mpad predict`);
  const source = await read(file);
  if (/\.(csv|tsv|tab)$/i.test(file.name) || file.type === "text/csv") return workspace.open(file.name, source);
  find("text").value = source;
  return classify();
}

// ── What people do ──

find("ask").onsubmit = (event) => {
  event.preventDefault();
  attempt(async () => {
    if (!context.models.length) await start();
    await classify();
  });
};
find("text").onkeydown = (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("ask").requestSubmit();
};
find("csv").onchange = () => {
  const [file] = find("csv").files;
  find("csv").value = "";
  if (file) attempt(() => take(file));
};
find("method").onchange = () => panels.length && attempt(classify);
find("model").onchange = () => {
  if (!panels.length) return welcome();
  panels[0].part("model").value = find("model").value;
  return attempt(() => again(panels[0]));
};
find("compare").onchange = () => find("text").value.trim() && attempt(classify);
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("over");
});
addEventListener("dragleave", (event) => event.relatedTarget ?? document.body.classList.remove("over"));
addEventListener("drop", (event) => {
  document.body.classList.remove("over");
  const [file] = event.dataTransfer.files;
  if (!file) return;
  event.preventDefault();
  attempt(() => take(file));
});

function theme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  const dark = (chosen ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  find("theme").textContent = dark ? "Light" : "Dark";
  find("theme").setAttribute("aria-pressed", String(dark));
  return dark;
}

let stored = null;
try { stored = localStorage.getItem("theme"); } catch { /* a browser may forbid it */ }
let dark = theme(stored ?? undefined);
find("theme").onclick = () => {
  dark = theme(dark ? "light" : "dark");
  try { localStorage.setItem("theme", dark ? "dark" : "light"); } catch { /* then it is forgotten */ }
};
attempt(start);
