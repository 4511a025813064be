"use strict";
// Airflow shows the pages in a frame of its own. The script follows Airflow's theme and the viewer's time zone, sends
// the form that proposes a plan to Airflow's public API, and opens Airflow's pages outside the frame.
const around = parent === window ? null : parent.document;

function theme() {
  const classes = around?.documentElement.classList;
  const chosen = ["dark", "light"].find((name) => classes?.contains(name)) ?? localStorage.getItem("theme");
  return ["dark", "light"].includes(chosen) ? chosen : "";
}

function dress() {
  document.documentElement.dataset.theme = theme();
  for (const frame of document.querySelectorAll("iframe")) frame.contentWindow.postMessage({ theme: theme() }, "*");
}

// Airflow's sandbox keeps its frames from opening pages in its window; a link of Airflow's own page may.
function leave(address) {
  if (!around) return location.assign(address);
  const link = around.createElement("a");
  link.href = address;
  around.body.append(link);
  link.click();
  link.remove();
}

function zone() {
  try {
    return JSON.parse(localStorage.getItem("timezone")) ?? undefined;
  } catch {
    return undefined;
  }
}

function localTimes() {
  const day = { timeZone: zone(), dateStyle: "medium" };
  const clock = new Intl.DateTimeFormat(undefined, {
    timeZone: zone(), hour: "2-digit", minute: "2-digit", timeZoneName: "short",
  });
  for (const time of document.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    const text = clock.format(at);
    if (/\b(UTC|GMT)$/.test(text)) continue;
    const local = document.createElement("span");
    local.className = "muted";
    local.textContent = ` (${text})`;
    local.title = new Intl.DateTimeFormat(undefined, day).format(at);
    time.append(local);
  }
}

function value(field) {
  if (field.type === "checkbox") return field.checked;
  if (field.tagName === "TEXTAREA") return field.value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (field.value === "") return null;
  return field.type === "number" ? Number(field.value) : field.value;
}

async function propose(event) {
  event.preventDefault();
  const form = event.target;
  const said = form.querySelector("output");
  const button = form.querySelector("button");
  const conf = Object.fromEntries([...form.elements].filter((field) => field.name).map((field) => [field.name, value(field)]));
  button.disabled = true;
  said.value = "";
  try {
    const answer = await fetch(form.action, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ logical_date: null, conf }),
    });
    const made = await answer.json();
    if (answer.ok) return leave(`${form.dataset.runs}/${encodeURIComponent(made.dag_run_id)}`);
    const why = typeof made.detail === "string" ? made.detail : JSON.stringify(made.detail);
    said.value = `Not proposed (${answer.status}): ${why}`;
  } catch (error) {
    said.value = `Not proposed: ${error.message}`;
  }
  button.disabled = false;
}

dress();
addEventListener("storage", dress);
if (around) new MutationObserver(dress).observe(around.documentElement, { attributeFilter: ["class"] });
addEventListener("DOMContentLoaded", () => {
  localTimes();
  for (const frame of document.querySelectorAll("iframe")) frame.addEventListener("load", dress);
  for (const form of document.querySelectorAll("form[data-runs]")) form.addEventListener("submit", propose);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[target=_top]");
    if (!link || !around || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    leave(link.href);
  });
});
