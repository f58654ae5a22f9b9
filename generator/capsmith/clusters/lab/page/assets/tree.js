// The tree of objects, as rows of a table.
import { html } from "./html.js";

export function age(time, now) {
  const seconds = Math.floor((now - Date.parse(time)) / 1000);
  if (!(seconds >= 0)) return "";
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export function State({ tone, state, paused }) {
  const word = state || (tone === "neutral" ? "" : tone);
  return html`${word && html`<span class=${`state ${tone}`}>${word}</span>`}${paused && html` <span class="state paused">Paused</span>`}`;
}

const WORDS = { failed: ["✕", "Error:"], deleting: ["−", "Deleting:"] };

// Why an object is not done: waits, errors and deletions have different words and marks.
export function Reason({ tone, text }) {
  if (!text) return null;
  const [mark, word] = WORDS[tone] || ["…", "Waiting:"];
  return html`<span class=${`reason ${tone}`}><span aria-hidden="true">${mark} </span><strong>${word}</strong> ${text}</span>`;
}

// An author's call that has not returned for long; nothing happens to its object meanwhile.
function LongCall({ call, begin, now }) {
  if (!call) return null;
  const since = new Date(begin * 1000).toISOString();
  return html`<span class="reason hanging"><span aria-hidden="true">⧗ </span><strong>Running</strong> ${call} since ${since.slice(11, 19)} UTC (${age(since, now)})</span>`;
}

function Name({ row, selected, onSelect, onToggle }) {
  const title = row.kind ? `${row.kind}/${row.name}` : row.name;
  const role = row.role && html`<span class="role">${row.role} </span>`;
  if (row.count) {
    return html`${role}<button type="button" class="toggle" aria-expanded=${row.is_open ? "true" : "false"}
      onClick=${() => onToggle(row.id)}>${title}</button>`;
  }
  if (!row.kind || row.kind === "Server") return html`${role}<span>${title}</span>`;
  return html`${role}<button type="button" class="name" aria-pressed=${row.id === selected ? "true" : "false"}
    onClick=${() => onSelect(row.id)}>${title}</button>`;
}

export function Tree({ rows, selected, now, onSelect, onToggle }) {
  return html`<table class="tree">
    <caption>Objects</caption>
    <thead><tr><th scope="col">Object</th><th scope="col">State</th><th scope="col">Age</th><th scope="col">Reason</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.id} class=${row.id === selected ? "selected" : ""}>
      <td><span class="indent" style=${{ paddingInlineStart: `${row.depth * 1.4}em` }}><span class="unseen">Level ${row.depth + 1}: </span>
        <${Name} row=${row} selected=${selected} onSelect=${onSelect} onToggle=${onToggle} /></span></td>
      <td><${State} tone=${row.tone} state=${row.state} paused=${row.is_paused} /></td>
      <td>${age(row.created, now)}</td>
      <td><${LongCall} call=${row.call} begin=${row.call_begin} now=${now} /><${Reason} tone=${row.tone} text=${row.waiting} /></td>
    </tr>`)}</tbody>
  </table>`;
}
