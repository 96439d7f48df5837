// CSV ↔ rows, as RFC 4180 has it: quotes, line breaks inside them, doubled quotes.

// The same lists as in src/mpad/data/tables.py.
const TEXTS = ["text", "document", "sentence", "review", "content", "body", "comment", "tweet", "message", "description",
  "abstract", "article", "post", "question", "utterance", "headline", "snippet", "review_text", "review_body"];
const LABELS = ["label", "labels", "class", "category", "target", "y", "sentiment", "tags", "stars", "rating", "score", "topic",
  "intent", "polarity", "emotion", "kind"];

export function parse(source) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  const text = source.replace(/^\uFEFF/, ""), between = separator(text);
  for (let k = 0; k < text.length; k += 1) {
    const letter = text[k];
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (text[k + 1] === '"') { cell += '"'; k += 1; }
      else quoted = false;
    } else if (letter === '"') quoted = true;
    else if (letter === between) { row.push(cell); cell = ""; }
    else if (letter === "\n" || letter === "\r") {
      if (letter === "\r" && text[k + 1] === "\n") k += 1;
      row.push(cell);
      if (row.length > 1 || row[0] !== "") rows.push(row);
      row = []; cell = "";
    } else cell += letter;
  }
  if (quoted) throw new Error("a quote is opened in the CSV and never closed");
  if (cell !== "" || row.length) { row.push(cell); rows.push(row); }
  return rows;
}

function separator(text) {
  // What the first row has most of: a comma, a semicolon, a tab or a bar.
  const first = text.split(/[\r\n]/, 1)[0].replace(/"[^"]*"/g, "");
  const counted = [",", ";", "\t", "|"].map((sign) => [first.split(sign).length, sign]);
  return counted.reduce((best, one) => (one[0] > best[0] ? one : best))[1];
}

export function format(rows, forSpreadsheets = false) {
  // For spreadsheets, a cell that they would run as a formula begins with an apostrophe.
  const guard = (value) => (forSpreadsheets && /^[=+\-@\t\r]/.test(value) && !Number.isFinite(Number(value)) ? `'${value}` : value);
  const cell = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return rows.map((row) => row.map((value) => cell(guard(String(value)))).join(",") + "\n").join("");
}

const lower = (names) => names.map((name) => name.trim().toLowerCase());

export function textColumn(rows) {
  // A column named like a text, else the one with the longest cells.
  const names = lower(rows[0]), named = names.findIndex((name) => TEXTS.includes(name));
  if (named >= 0) return named;
  const lengths = names.map((_, column) => rows.slice(1, 50).reduce((sum, row) => sum + (row[column] ?? "").length, 0));
  return lengths.indexOf(Math.max(...lengths));
}

export function labelColumn(rows, classes, text, split) {
  // A column named like a label, or one whose cells hold the model's classes and no others; −1: there is none.
  const names = lower(rows[0]), named = names.findIndex((name, column) => LABELS.includes(name) && column !== text);
  if (named >= 0) return named;
  const known = new Set(classes), sample = rows.slice(1, 50);
  return names.findIndex((_, column) => column !== text && sample.length && sample.some((row) => row[column]) && sample.every((row) => split(row[column]).every((name) => known.has(name))));
}
