// The page: what is shown, kept in one object; each change of it renders the page again.
import { render } from "./vendor/preact.js";
import { html } from "./html.js";
import { follow, forgetKey, keepKey, post, takeKey } from "./connection.js";
import { Tree } from "./tree.js";
import { Details } from "./details.js";
import { Actions } from "./actions.js";
import { Logs } from "./logs.js";

const MAX_LINES = 500;
const RETRY = 1000;

const page = {
  key: takeKey(),
  refused: false,
  connected: false,
  lab: { title: "", running: true, provider: "", logs: [], components: [] },
  counts: {},
  problems: [],
  progress: null,
  order: null,
  rows: new Map(),
  open: new Set(),
  search: "",
  waitingOnly: false,
  selected: "",
  object: undefined,
  time: null,
  actions: { lab: [], object: [] },
  done: "",
  component: "",
  only: false,
  following: true,
  lines: [],
  lineNumber: 0,
};
let ending = new AbortController();
let isPlanned = false;

function draw() {
  if (isPlanned) return;
  isPlanned = true;
  requestAnimationFrame(() => {
    isPlanned = false;
    render(html`<${Page} />`, root);
  });
}

function receive(message) {
  page.connected = true;
  if (message.tree) {
    (message.tree.rows || []).forEach((row) => page.rows.set(row.id, row));
    if (message.tree.order) {
      page.order = message.tree.order;
      const kept = new Set(page.order);
      [...page.rows.keys()].forEach((id) => kept.has(id) || page.rows.delete(id));
    }
  }
  for (const part of ["lab", "counts", "problems", "progress", "object", "time", "actions"]) {
    if (part in message) page[part] = message[part];
  }
  if (message.logs) {
    message.logs.forEach((line) => { line.number = page.lineNumber++; });
    page.lines = [...page.lines, ...message.logs].slice(-MAX_LINES);
  }
  if (page.lab.title) document.title = `${page.lab.title} - capsmith`;
  draw();
}

// Asks the server for what is now to be shown, in place of what was before.
function request() {
  ending.abort();
  ending = new AbortController();
  page.lines = [];
  draw();
  if (page.key) keep(ending.signal);
}

async function keep(signal) {
  while (!signal.aborted) {
    let status = 0;
    try {
      status = await follow({
        open: [...page.open],
        search: page.search,
        waitingOnly: page.waitingOnly,
        selected: page.selected,
        component: page.component,
        onlySelected: page.only && Boolean(page.selected),
      }, (message) => signal.aborted || receive(message), signal);
    } catch (error) {
      if (signal.aborted) return;
    }
    if (status === 401) {
      forgetKey();
      Object.assign(page, { key: "", refused: true });
      draw();
      return;
    }
    page.connected = false;
    page.lines = [];
    draw();
    await new Promise((resolve) => { setTimeout(resolve, RETRY); });
  }
}

function change(changes) {
  Object.assign(page, changes);
  request();
}

function select(id) {
  change({ selected: id, object: undefined, time: null, done: "", only: page.only && Boolean(id) });
}

function toggle(id) {
  if (!page.open.delete(id)) page.open.add(id);
  request();
}

async function act(action, object) {
  page.done = `${action.title} ...`;
  draw();
  try {
    const response = await post("/api/action", { action: action.id, object });
    const { error } = await response.json();
    page.done = error ? `${action.title}: ${error}` : `Done: ${action.title}.`;
  } catch (error) {
    page.done = `${action.title}: no response from capsmith lab page`;
  }
  draw();
}

function enter(event) {
  event.preventDefault();
  const key = new FormData(event.currentTarget).get("key").trim();
  keepKey(key);
  change({ key, refused: false });
}

function KeyForm() {
  return html`<main><h1>capsmith lab</h1>
    ${page.refused && html`<p class="notice" role="alert">The server refuses this key. It is another one after each start.</p>`}
    <p>Open the file that <code>capsmith lab page</code> names, or enter the key that is in it.</p>
    <form onSubmit=${enter}><label>Key <input name="key" type="password" autocomplete="off" required /></label> <button>Open</button></form>
  </main>`;
}

function Notices() {
  const notices = [];
  if (!page.connected && page.order) notices.push("No connection to capsmith lab page: what is shown is the last known state.");
  if (!page.lab.running) notices.push("The lab has ended: what is shown is its last state.");
  if (page.lab.provider) notices.push(`The provider has ${page.lab.provider}`);
  page.lab.components.forEach((each) => {
    if (each.state !== "running") notices.push(`${each.name} is ${each.state}: ${each.reason}`);
  });
  page.problems.forEach((each) => notices.push(`Cannot watch ${each.source}: ${each.message}`));
  if (page.done) notices.push(page.done);
  return html`<div role="status">${notices.map((text) => html`<p class="notice">${text}</p>`)}</div>`;
}

function Header() {
  const counts = ["ok", "waiting", "failed", "deleting", "paused"].filter((tone) => page.counts[tone]);
  const restarted = page.lab.components.filter((each) => each.restarts);
  return html`<header><h1>${page.lab.title || "capsmith lab"}</h1>
    <p>${counts.map((tone) => html`<span class=${`state ${tone}`}>${page.counts[tone]} ${tone}</span> `)}
      ${restarted.map((each) => html`<span>${each.name} restarted ${each.restarts} times </span>`)}</p>
    <${Notices} />
    <${Actions} title="Try in this lab" actions=${page.actions.lab} onAct=${(each) => act(each, "")} />
    ${page.progress && html`<p><label>Reading the cluster: ${page.progress.read} of ${page.progress.total} objects <progress value=${page.progress.read} max=${page.progress.total} /></label></p>`}
    <p class="controls"><label>Search <input type="search" value=${page.search} onInput=${(event) => change({ search: event.currentTarget.value })} /></label>
      <label><input type="checkbox" checked=${page.waitingOnly} onChange=${(event) => change({ waitingOnly: event.currentTarget.checked })} /> Only what waits</label></p>
  </header>`;
}

function Page() {
  if (!page.key) return html`<${KeyForm} />`;
  const now = Date.now();
  const rows = (page.order || []).map((id) => page.rows.get(id));
  const components = page.lab.logs;
  return html`<${Header} /><main class=${page.selected ? "split" : ""}>
    <div class="objects wide" tabindex="0" role="region" aria-label="Objects">
      ${page.order && !rows.length && !page.progress && html`<p>No object of Cluster API.</p>`}
      <${Tree} rows=${rows} selected=${page.selected} now=${now} onSelect=${select} onToggle=${toggle} />
    </div>
    ${page.object && html`<${Details} key=${page.object.id} object=${page.object} time=${page.time} actions=${page.actions.object} onAct=${(each) => act(each, page.selected)} now=${now} onSelect=${select} onClose=${() => select("")} />`}
    ${page.object === null && html`<section class="details"><h2>The object is gone <button type="button" onClick=${() => select("")}>Close</button></h2></section>`}
    ${Boolean(components.length) && html`<${Logs} lines=${page.lines} components=${components} component=${page.component} only=${page.only}
      selected=${page.selected} following=${page.following} onComponent=${(component) => change({ component })}
      onOnly=${(only) => change({ only })} onFollow=${(following) => { page.following = following; draw(); }} />`}
  </main>`;
}

const root = document.getElementById("page");
root.replaceChildren();
setInterval(draw, 10000);
window.addEventListener("hashchange", () => change({ key: takeKey(), refused: false }));
request();
