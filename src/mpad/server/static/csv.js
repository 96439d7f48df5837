// CSV ↔ rows, as RFC 4180 has it: quotes, line breaks inside them, doubled quotes.

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
  // What the first row has most of: a comma, a semicolon or a tab.
  const first = text.split(/[\r\n]/, 1)[0].replace(/"[^"]*"/g, "");
  const counted = [",", ";", "\t"].map((sign) => [first.split(sign).length, sign]);
  return counted.reduce((best, one) => (one[0] > best[0] ? one : best))[1];
}

export function format(rows) {
  const cell = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  return rows.map((row) => row.map((value) => cell(String(value))).join(",") + "\n").join("");
}

export function textColumn(rows) {
  // A column named like a text, else the one with the longest cells.
  const names = rows[0].map((name) => name.trim().toLowerCase());
  const named = names.findIndex((name) => ["text", "document", "review", "sentence", "body"].includes(name));
  if (named >= 0) return named;
  const lengths = names.map((_, column) => rows.slice(1, 50).reduce((sum, row) => sum + (row[column] ?? "").length, 0));
  return lengths.indexOf(Math.max(...lengths));
}
