// Where an object's time went, and the author's calls.
import { html } from "./html.js";

function duration(seconds) {
  if (seconds < 0.0005) return "0 s";
  if (seconds < 10) return `${seconds.toFixed(seconds < 1 ? 3 : 1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

function Bar({ span, begin, total, end }) {
  const seconds = span.seconds === null ? end - span.begin : span.seconds;
  const percent = (value) => `${Math.min(100, Math.max(0, (value / total) * 100))}%`;
  const style = { marginInlineStart: percent(span.begin - begin), inlineSize: percent(seconds) };
  return html`<span aria-hidden="true" class=${`bar ${span.who.replace(/\W/g, "-")}`} style=${style}></span>`;
}

function Axis({ time, now }) {
  if (!time.spans.length) return html`<p>Nothing is known.</p>`;
  const open = time.spans.some((span) => span.seconds === null);
  const begin = Math.min(...time.spans.map((span) => span.begin));
  const end = Math.max(open ? now / 1000 : 0, ...time.spans.map((span) => span.begin + (span.seconds || 0)));
  const total = Math.max(end - begin, 0.001);
  const several = new Set(time.spans.map((span) => span.object)).size > 1;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Time axis"><table class="axis">
    <thead><tr>${several && html`<th scope="col" class="object">Object</th>`}<th scope="col" class="seconds">After</th><th scope="col" class="seconds">Took</th><th scope="col" class="who">Who</th><th scope="col">What, of ${duration(total)}</th></tr></thead>
    <tbody>${time.spans.map((span) => html`<tr>${several && html`<td title=${span.object}>${span.object.split("/")[0]}</td>`}<td class="short">${duration(Math.max(0, span.begin - begin))}</td>
      <td class="short">${span.seconds === null ? `${duration(Math.max(0, end - span.begin))} so far` : duration(span.seconds)}</td><th scope="row">${span.who}</th>
      <td class="message">${span.what}<${Bar} span=${span} begin=${begin} total=${total} end=${end} /></td></tr>`)}</tbody>
  </table></div>`;
}

function Calls({ calls }) {
  return html`<div class="wide" tabindex="0" role="region" aria-label="The author's calls"><table>
    <thead><tr><th scope="col">Method</th><th scope="col">Began</th><th scope="col">Took</th><th scope="col">Result</th><th scope="col">Next reconcile</th></tr></thead>
    <tbody>${calls.map((call) => html`<tr><th scope="row" title=${call.method}>${call.method.split(".").pop()}</th><td class="short">${new Date(call.begin * 1000).toISOString().slice(11, 23)}</td>
      <td class="short">${call.seconds === null ? "running" : duration(call.seconds)}</td><td class="message">${call.result} ${call.error}</td>
      <td>${call.requeue === null ? "after a change" : `after ${duration(call.requeue)}`}</td></tr>`)}</tbody>
  </table></div>`;
}

const SLOW = 5;

function Running({ calls, now }) {
  const slow = calls.filter((call) => call.seconds === null && now / 1000 - call.begin > SLOW);
  return slow.map((call) => html`<p class="notice">${call.object}: ${call.method} has been running for ${duration(now / 1000 - call.begin)}. Nothing else happens to the object until it returns.</p>`);
}

export function Time({ time, now }) {
  return html`<${Running} calls=${time.calls} now=${now} /><details open><summary>Time</summary><${Axis} time=${time} now=${now} /></details>
    ${time.calls.length > 0 && html`<details open><summary>The author's calls (${time.calls.length})</summary><${Calls} calls=${time.calls} /></details>`}`;
}
