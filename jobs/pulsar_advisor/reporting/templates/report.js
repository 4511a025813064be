"use strict";
// Sorts a table by the column whose heading is clicked. Without scripts the page is the same, in its own order.
const UNITS = { kB: 1e3, MB: 1e6, GB: 1e9 };

function figure(text) {
  const found = /^(-?[\d,.]+)\s*(kB|MB|GB)?/.exec(text);
  return found ? parseFloat(found[1].replaceAll(",", "")) * (UNITS[found[2]] ?? 1) : -Infinity;
}

function key(row, column, numeric) {
  const text = row.cells[column].textContent.trim();
  return numeric ? figure(text) : text;
}

function sortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  const groups = [];
  for (const row of table.tBodies[0].rows) {
    // A row that explains the one above it stays below it.
    if (row.classList.contains("why")) groups.at(-1).push(row);
    else groups.push([row]);
  }
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
        return sign * (left < right ? -1 : left > right ? 1 : 0);
      });
      table.tBodies[0].append(...groups.flat());
    });
  });
}

document.querySelectorAll("table:has(> thead):has(> tbody)").forEach(sortable);
