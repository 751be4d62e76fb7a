// How are tables sorted, searched and copied? The rows are in the page already; script only reorders and hides them.
import { copyText, flash } from "./dom.ts";

const FIRST_ROWS = 12;

/** A cell as a spreadsheet must read it: quoted, and never as a formula. */
export function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?[\d.]+$/.test(text) ? "'" + text : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function toCsv(rows: string[][]): string {
  return rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

/** Order of two cells: numbers by size, text by letter, empty cells last. */
export function compareCells(a: string, b: string): number {
  if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
  const x = Number(a);
  const y = Number(b);
  if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  return a.localeCompare(b);
}

function cellValue(row: HTMLTableRowElement, column: number): string {
  const cell = row.cells[column];
  return cell.dataset.v ?? (cell.textContent ?? "").trim();
}

class SortableTable {
  private readonly rows: HTMLTableRowElement[];
  private readonly body: HTMLTableSectionElement;
  private query = "";
  private open = false;

  constructor(private readonly box: HTMLElement, private readonly table: HTMLTableElement) {
    this.body = table.tBodies[0];
    this.rows = [...this.body.rows];
    [...table.tHead!.rows[0].cells].forEach((head, column) => {
      head.querySelector("button")?.addEventListener("click", () => this.sort(column, head));
    });
    const filter = box.querySelector<HTMLInputElement>("input[data-filter]");
    filter?.addEventListener("input", () => {
      this.query = filter.value.toLowerCase();
      this.show();
    });
    const copy = box.querySelector<HTMLElement>("[data-copy-csv]");
    copy?.addEventListener("click", () => {
      void copyText(this.csv()).then(() => flash(copy, "copied"));
    });
    box.querySelector("[data-more]")?.addEventListener("click", () => {
      this.open = !this.open;
      this.show();
    });
    this.show();
  }

  private matching(): HTMLTableRowElement[] {
    return this.rows.filter((row) => !this.query || (row.textContent ?? "").toLowerCase().includes(this.query));
  }

  private show(): void {
    const hits = this.matching();
    const shown = new Set(this.open || this.query ? hits : hits.slice(0, FIRST_ROWS));
    for (const row of this.rows) row.hidden = !shown.has(row);
    const more = this.box.querySelector<HTMLElement>("[data-more]");
    if (more) {
      more.hidden = hits.length <= FIRST_ROWS || this.query !== "";
      more.textContent = this.open ? `show the first ${FIRST_ROWS}` : `show all ${this.rows.length} rows`;
    }
    const count = this.box.querySelector<HTMLElement>("[data-count]");
    if (count) count.textContent = this.query ? `${hits.length} of ${this.rows.length}` : "";
  }

  private sort(column: number, head: HTMLTableCellElement): void {
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const other of this.table.tHead!.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sign = down ? -1 : 1;
    this.rows.sort((a, b) => {
      const x = cellValue(a, column);
      const y = cellValue(b, column);
      return x === "" || y === "" ? compareCells(x, y) : sign * compareCells(x, y);
    });
    this.body.append(...this.rows);
    this.show();
  }

  private csv(): string {
    const heads = [...this.table.tHead!.rows[0].cells].map((c) => (c.textContent ?? "").trim());
    const rows = this.matching().map((row) => heads.map((_, column) => cellValue(row, column)));
    return toCsv([heads, ...rows]);
  }
}

/** Bring every table of the page to life. */
export function enliven(root: ParentNode): void {
  for (const box of root.querySelectorAll<HTMLElement>("[data-table]")) {
    const table = box.querySelector("table");
    if (table) new SortableTable(box, table);
  }
  for (const tabs of root.querySelectorAll<HTMLElement>("[role=tablist]")) tabList(tabs);
}

function tabList(list: HTMLElement): void {
  const tabs = [...list.querySelectorAll<HTMLElement>("[role=tab]")];
  const pick = (chosen: HTMLElement) => {
    for (const tab of tabs) {
      const on = tab === chosen;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
      const panel = document.getElementById(tab.getAttribute("aria-controls") ?? "");
      if (panel) panel.hidden = !on;
    }
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => pick(tab));
    tab.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (!step) return;
      const next = tabs[(i + step + tabs.length) % tabs.length];
      pick(next);
      next.focus();
    });
  });
  if (tabs.length) pick(tabs[0]);
}
