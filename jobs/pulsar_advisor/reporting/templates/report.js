"use strict";
// Sorts a table by the column whose heading is clicked, and filters a long one by what its rows say. In a frame, the
// page around it says which theme to show. Without scripts the page is the same, in its own order.
const LONG = 30;
const UNITS = { kB: 1e3, MB: 1e6, GB: 1e9 };

function figure(text) {
  const found = /^(-?[\d,.]+)\s*(kB|MB|GB)?/.exec(text);
  return found ? parseFloat(found[1].replaceAll(",", "")) * (UNITS[found[2]] ?? 1) : -Infinity;
}

function key(row, column, numeric) {
  const text = row.cells[column].textContent.trim();
  return numeric ? figure(text) : text;
}

function grouped(table) {
  const groups = [];
  for (const row of table.tBodies[0].rows) {
    // A row that explains the one above it stays below it.
    if (row.classList.contains("why") && groups.length) groups.at(-1).push(row);
    else groups.push([row]);
  }
  return groups;
}

function filterable(table) {
  const groups = grouped(table);
  if (groups.length < LONG) return;
  const label = document.createElement("label");
  const input = document.createElement("input");
  const shown = document.createElement("output");
  label.className = "filter";
  input.type = "search";
  label.append("Filter ", input, " ", shown);
  (table.closest(".scroll") ?? table).before(label);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let number = 0;
    for (const group of groups) {
      const text = group.map((row) => row.textContent).join(" ").toLowerCase();
      const matches = words.every((word) => text.includes(word));
      for (const row of group) row.hidden = !matches;
      number += matches;
    }
    shown.value = words.length ? `${number} of ${groups.length}` : "";
  });
}

function sortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  const groups = grouped(table);
  if (groups.length < 2 || groups.some(([row]) => row.cells.length !== headings.length)) return;
  headings.forEach((heading, column) => {
    const numeric = heading.classList.contains("n");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const first = numeric ? "descending" : "ascending";
      const other = numeric ? "ascending" : "descending";
      const order = heading.ariaSort === first ? other : first;
      const sign = order === "ascending" ? 1 : -1;
      for (const each of headings) each.ariaSort = null;
      heading.ariaSort = order;
      groups.sort(([one], [two]) => {
        const [left, right] = [key(one, column, numeric), key(two, column, numeric)];
        if (!numeric) return sign * left.localeCompare(right, "en", { numeric: true });
        return sign * (left < right ? -1 : left > right ? 1 : 0);
      });
      table.tBodies[0].append(...groups.flat());
    });
  });
}

document.querySelectorAll("table:has(> thead):has(> tbody)").forEach((table) => {
  sortable(table);
  filterable(table);
});

addEventListener("message", ({ data }) => {
  if (["dark", "light", ""].includes(data?.theme)) document.documentElement.dataset.theme = data.theme;
});
