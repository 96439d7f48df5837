// A file of documents: scored, sorted, filtered, explained row by row, corrected, downloaded.

import { format, labelColumn, parse, textColumn } from "./csv.js";
import { classColour, find, make, percent, shortened } from "./dom.js";
import { Labelling, outcome, same } from "./labels.js";
import { binOf, overview, STRANGE } from "./overview.js";
import { Table } from "./table.js";

const SNIPPET = 300;

export class Workspace {
  constructor(context) {
    Object.assign(this, { context, filter: {}, corrections: new Map() });
    for (const name of ["space-model", "space-text", "space-label"]) find(name).onchange = () => this.chosen(name);
    find("space-go").onclick = () => context.attempt(() => this.score());
    find("space-close").onclick = () => this.close();
    find("space-search").oninput = () => this.set({ search: find("space-search").value.toLowerCase() });
    find("space-clear").onclick = () => { find("space-search").value = ""; this.filter = {}; this.refresh(); };
    find("download").onclick = () => save("scored.csv", this.scoredRows(), true);
    find("download-corrections").onclick = () => this.saveCorrections();
  }

  open(name, source) {
    const rows = parse(source);
    if (rows.length < 2) throw new Error(`${name}: expected a first row of names and at least one document`);
    const uneven = rows.findIndex((row) => row.length > rows[0].length);
    if (uneven > 0) throw new Error(`${name}: row ${uneven + 1} has ${rows[uneven].length} cells, the first row ${rows[0].length}`);
    for (const row of rows) while (row.length < rows[0].length) row.push("");
    Object.assign(this, { name, header: rows[0], source: rows.slice(1), documents: [], corrections: new Map(), filter: {} });
    find("workspace").hidden = false;
    find("welcome").hidden = true;
    find("space-result").hidden = true;
    this.leaveRow();
    find("space-name").textContent = `${name}, ${this.source.length.toLocaleString("en")} documents`;
    fill(find("space-model"), this.context.models.map((model) => model.name), this.context.first());
    const text = textColumn(rows);
    fill(find("space-text"), rows[0], rows[0][text]);
    find("space-text").selectedIndex = text;
    this.guessLabel();
    find("space-model-label").hidden = this.context.models.length < 2;
    find("space-go").focus();
    this.context.say(`${name} is read. Look at the columns, then score it.`);
  }

  guessLabel() {
    const { model } = this, rows = this.source.slice(0, 60), labelling = new Labelling(model, rows.flat());
    const label = labelColumn([this.header, ...rows], model.classes, find("space-text").selectedIndex, (cell) => labelling.split(cell));
    fill(find("space-label"), ["none", ...this.header]);
    find("space-label").selectedIndex = label + 1;
  }

  chosen(name) {
    if (name !== "space-label") this.guessLabel();
  }

  get model() {
    return this.context.models.find((model) => model.name === find("space-model").value);
  }

  close() {
    find("workspace").hidden = true;
    this.leaveRow();
    this.context.say("");
  }

  // ── Scoring ──

  async score() {
    const { context, source, name } = this, model = this.model, text = find("space-text").selectedIndex, label = find("space-label").selectedIndex - 1;
    if (label === text) throw new Error(`column “${this.header[text]}” cannot be both text and class`);
    const run = (this.run = (this.run ?? 0) + 1), documents = [];
    const labelling = new Labelling(model, label >= 0 ? source.slice(0, 1000).map((row) => row[label]) : []);
    this.leaveRow();
    find("progress").hidden = false;
    find("progress").value = 0;
    let done = 0;
    while (done < source.length) {
      context.say(`Scoring ${name}: ${done.toLocaleString("en")} of ${source.length.toLocaleString("en")}`);
      const part = this.portion(done, text), fits = part.filter((row) => this.fits(row[text]));
      const { predictions } = await context.ask("predict", { texts: fits.map((row) => row[text]), model: model.name });
      if (run !== this.run) return; // started again meanwhile
      for (const row of part) {
        const scored = this.fits(row[text]), { label: predicted, labels, probabilities, unknown } = scored ? predictions.shift() : { labels: [], probabilities: null, unknown: null };
        const p = probabilities ? Float32Array.from(model.classes, (one) => probabilities[one]) : null;
        documents.push({ number: documents.length, row, text: row[text], scored, given: labels ?? [predicted], truth: label >= 0 ? labelling.split(row[label]) : null, p, unknown,
          sure: p && !model.many ? Math.max(...p) : null });
      }
      done += part.length;
      find("progress").value = done / source.length;
    }
    find("progress").hidden = true;
    Object.assign(this, { documents, scoredBy: model, labelling, labelled: label >= 0, corrections: new Map(), filter: {} });
    this.findDuplicates();
    this.result();
  }

  fits(text) {
    const { limits } = this.context;
    if (text.includes("\0")) return false;
    const short = Math.min(limits.characters, limits.body / 6); // so short in UTF-16 that no way of counting is too long
    return text.length <= short || (Array.from(text).length <= limits.characters && new Blob([text]).size < limits.body / 2);
  }

  portion(from, column) {
    // As many rows as one request may hold; JSON at most doubles what it quotes, but for control characters.
    const { limits } = this.context;
    let size = 0, to = from;
    while (to < this.source.length && to - from < limits.documents) {
      const text = this.source[to][column];
      size += this.fits(text) ? 8 + JSON.stringify(text).length * 3 : 0;
      if (size > limits.body && to > from) break;
      to += 1;
    }
    return this.source.slice(from, to);
  }

  findDuplicates() {
    // Texts that are the same but for case, spaces and punctuation.
    const first = new Map();
    for (const document of this.documents) {
      const key = document.text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
      document.again = key !== "" && first.has(key);
      if (!first.has(key)) first.set(key, document);
      else first.get(key).again ||= key !== "";
    }
  }

  // ── The result ──

  result() {
    find("space-result").hidden = false;
    const colour = (name) => { const dot = make("i", { class: "dot" }); dot.style.background = classColour(Math.max(this.scoredBy.classes.indexOf(name), 0)); return dot; };
    const joined = (names) => this.labelling.join(names ?? []);
    const named = (names) => (names.length ? make("span", {}, ...names.flatMap((name) => [colour(name), `${name} `])) : "—");
    const columns = [
      { name: "row", class: "short", value: (one) => one.number, show: (one) => String(one.number + 1) },
      { name: "class", class: "name", value: (one) => joined(one.given), show: (one) => named(one.given) },
      ...(this.documents.some((one) => one.sure !== null) ? [{ name: "sure", class: "short", value: (one) => one.sure ?? -1, show: (one) => (one.sure === null ? "—" : percent(one.sure)) }] : []),
      ...(this.labelled ? [{ name: "true class", class: "name", value: (one) => joined(one.truth), show: (one) => named(one.truth) }] : []),
      ...(this.documents.some((one) => one.unknown > 0) ? [{ name: "unknown", class: "short", value: (one) => one.unknown ?? 0, show: (one) => (one.unknown ? percent(one.unknown) : "") }] : []),
      { name: "text", class: "wide", value: (one) => one.text, show: (one) => shortened(one.text.replace(/\s+/g, " "), SNIPPET) },
      { name: "corrected", class: "name", value: (one) => joined(this.corrections.get(one.number)), show: (one) => this.correctedCell(one) },
    ];
    this.table = new Table(find("space-table"), columns, (document) => this.explain(document));
    const missed = this.documents.filter((one) => !one.scored).length;
    const left = missed ? ` ${missed} have no class: they are too long, or hold the character NUL.` : "";
    this.context.say(`${this.documents.length.toLocaleString("en")} documents scored by ${this.scoredBy.name}.${left}`);
    this.refresh();
    find("download").focus();
  }

  set(change) {
    Object.assign(this.filter, change);
    this.refresh();
  }

  toggle(change) {
    const same = Object.entries(change).every(([key, value]) => this.filter[key] === value);
    this.set(same ? Object.fromEntries(Object.keys(change).map((key) => [key, undefined])) : change);
  }

  refresh() {
    const { predicted, truth, bin, search, again, wrong, strange, became } = this.filter, [kind, name] = (became ?? "").split("\u0000");
    const chosen = this.documents.filter((one) => (predicted === undefined || one.given.includes(predicted)) && (truth === undefined || one.truth.includes(truth))
      && (became === undefined || outcome(one, name) === kind)
      && (bin === undefined || (one.sure !== null && binOf(one.sure) === bin)) && (!search || one.text.toLowerCase().includes(search))
      && (!again || one.again) && (!strange || one.unknown >= STRANGE) && (!wrong || !same(one.truth, one.given)));
    this.table.show(chosen);
    find("space-count").textContent = `${chosen.length.toLocaleString("en")} of ${this.documents.length.toLocaleString("en")} shown`;
    find("space-clear").hidden = chosen.length === this.documents.length;
    find("space-overview").replaceChildren(...overview(this));
    find("download-corrections").hidden = !this.corrections.size;
    find("download-corrections").textContent = `Download ${this.corrections.size} correction${this.corrections.size === 1 ? "" : "s"}`;
  }

  // ── One row ──

  async explain(document) {
    // The table becomes lower and goes to the top of the window: row, choices and explanation are in sight together.
    find("workspace").classList.add("explaining");
    this.rowChoices(document);
    await this.context.show(document.text, this.scoredBy.name);
    find("space-table").scrollIntoView({ block: "start" });
  }

  rowChoices(document) {
    const place = find("space-correct"), undo = make("button", { type: "button", id: "space-undo", onclick: () => this.undo(document) }, "Undo");
    undo.hidden = !this.corrections.has(document.number);
    place.replaceChildren(`Row ${document.number + 1} should be `, ...(this.scoredBy.many ? this.labelButtons(document) : [this.classChoice(document)]), undo);
    place.hidden = false;
  }

  leaveRow() {
    // Its buttons correct a document of this file as it was scored: not of another, nor by another model.
    find("space-correct").hidden = true;
    find("space-correct").replaceChildren();
    find("workspace").classList.remove("explaining");
  }

  classChoice(document) {
    // Nothing is chosen at first, so that every class can be, the model's own and the file's too.
    const choice = make("select", { "aria-label": "the right class" }, make("option", { value: "" }, "choose a class"),
      ...this.scoredBy.classes.map((name) => make("option", { value: name }, name)));
    [choice.value] = this.corrections.get(document.number) ?? [""];
    choice.onchange = () => (choice.value ? this.correct(document, [choice.value]) : this.undo(document));
    return choice;
  }

  labelButtons(document) {
    // Each label by itself, on or off.
    const now = () => this.corrections.get(document.number) ?? document.given;
    return this.scoredBy.classes.map((name) => {
      const button = make("button", { type: "button", class: "label", "aria-pressed": String(now().includes(name)) }, name);
      button.onclick = () => {
        this.correct(document, this.scoredBy.classes.filter((one) => now().includes(one) !== (one === name)));
        button.setAttribute("aria-pressed", String(now().includes(name)));
      };
      return button;
    });
  }

  correct(document, labels) {
    // Of many labels, switching one on and off again corrects nothing; a class that was chosen is always recorded.
    if (this.scoredBy.many && same(labels, document.given) && same(document.truth ?? document.given, document.given)) this.corrections.delete(document.number);
    else this.corrections.set(document.number, labels);
    find("space-undo").hidden = !this.corrections.has(document.number);
    this.refresh();
  }

  undo(document) {
    this.corrections.delete(document.number);
    this.refresh();
    this.rowChoices(document);
  }

  correctedCell(document) {
    const labels = this.corrections.get(document.number);
    return labels === undefined ? "" : this.labelling.join(labels) || "no label";
  }

  saveCorrections() {
    save("corrections.csv", this.correctedRows());
    const separator = this.scoredBy.many ? ` --separator '${this.labelling.sign}'` : "";
    this.context.say(`Learn from them: mpad fit DATA --add corrections.csv${separator} --out MODEL`);
  }

  scoredRows() {
    const { classes } = this.scoredBy, { labelling } = this, label = this.header.includes("label") ? "predicted label" : "label";
    const rows = [[...this.header, label, ...classes.map((name) => `p(${name})`), ...(this.corrections.size ? ["corrected label"] : [])]];
    for (const one of this.documents) {
      const p = one.p ? [...one.p].map((value) => value.toFixed(6)) : classes.map(() => "");
      rows.push([...one.row, labelling.join(one.given), ...p, ...(this.corrections.size ? [labelling.join(this.corrections.get(one.number) ?? [])] : [])]);
    }
    return rows;
  }

  correctedRows() {
    return [["text", "label"], ...[...this.corrections].map(([number, labels]) => [this.documents[number].text, this.labelling.join(labels)])];
  }
}


function fill(select, names, chosen) {
  select.replaceChildren(...names.map((name) => make("option", {}, name)));
  if (chosen !== undefined) select.value = chosen;
}

function save(name, rows, forSpreadsheets = false) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([format(rows, forSpreadsheets)], { type: "text/csv" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
