// The key of this page, and the stream of changes from its server.
const KEY = "capsmith-key";

// The key comes behind the # of the address, which no browser sends anywhere.
export function takeKey() {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) || "";
}

export function keepKey(key) {
  sessionStorage.setItem(KEY, key);
}

export function forgetKey() {
  sessionStorage.removeItem(KEY);
}

export function post(path, body, signal) {
  return fetch(path, {
    method: "POST",
    headers: { "authorization": `Bearer ${takeKey()}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    cache: "no-store",
    signal,
  });
}

// Calls receive with each message, until the signal or the end of the server.
// Returns the HTTP status of the response if there was one, or else 0.
export async function follow(request, receive, signal) {
  const response = await post("/api/stream", request, signal);
  if (!response.ok) return response.status;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return 0;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    lines.forEach((line) => receive(JSON.parse(line)));
  }
}
