// Sends an example of the API's page to this server, and shows what it answers.

for (const line of document.querySelectorAll(".curl")) line.textContent = line.textContent.replace("localhost:8000", location.host);
for (const form of document.querySelectorAll(".try")) {
  form.onsubmit = async (event) => {
    event.preventDefault();
    const place = form.querySelector("pre"), body = form.querySelector("textarea")?.value, key = document.getElementById("key").value;
    const headers = { ...(body === undefined ? {} : { "content-type": "application/json" }), ...(key ? { "x-api-key": key } : {}) };
    place.hidden = false;
    try {
      const response = await fetch(form.dataset.path, { method: form.dataset.method, headers, body });
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 1); } catch { /* as it came */ }
      place.textContent = `${response.status}\n${shown.length > 4000 ? `${shown.slice(0, 4000)}\n…` : shown}`;
    } catch {
      place.textContent = "the server does not answer";
    }
  };
}
