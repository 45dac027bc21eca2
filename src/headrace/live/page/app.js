// The page of a running pipeline. It asks for the next image when it has drawn the last one, so a
// slow browser gets fewer images and the pipeline never waits for it.

const $ = (id) => document.getElementById(id);
const tiles = new Map(); // source id -> {button, canvas, under, number}
let chosen = null; // id of the source that is shown alone
let held = false; // the image stays
let last = null; // head of its last image
let picked = null; // object or place whose details are shown
let opened = false; // the source that the address names was shown
let state = { sources: [], explains: false };
const OVER = ["ended", "failed", "stopped"];

function element(kind, text, classes) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (classes) made.className = classes;
  return made;
}

async function ask(path, body) {
  const answer = await fetch(path, body && {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  });
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw new Error(said.error || answer.statusText);
  }
  return answer;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const counted = (counts) => Object.entries(counts).map(([name, n]) => `${n} ${name}`).join(", ");

function facts(list, rows) {
  list.replaceChildren(...rows.flatMap(([name, value, classes]) => [
    element("dt", name), element("dd", value, classes),
  ]));
}

// --- state -------------------------------------------------------------------------------------

function tileOf(source) {
  let tile = tiles.get(source.id);
  if (!tile) {
    const button = element("button", undefined, "tile");
    const canvas = element("canvas"), under = element("span", undefined, "under");
    button.type = "button";
    button.dataset.source = source.id;
    button.append(canvas, under);
    button.addEventListener("click", () => choose(source.id));
    tile = { button, canvas, under, number: 0 };
    tiles.set(source.id, tile);
    $("tiles").append(button);
  }
  return tile;
}

function showState(now) {
  state = now;
  now.sources.sort((a, b) => a.id - b.id);
  const rate = now.sources.reduce((sum, s) => sum + s.fps, 0);
  const word = now.state === "running" ? "running" : "the run is over";
  say($("state"), word);
  $("figures").textContent = `, ${now.frames} frames in ${now.seconds} s, now ${rate.toFixed(1)} fps`;
  const ids = new Set(now.sources.filter((s) => s.state !== "removed").map((s) => s.id));
  for (const [id, tile] of tiles) {
    if (!ids.has(id)) { tile.button.remove(); tiles.delete(id); if (chosen === id) choose(null); }
  }
  for (const source of now.sources) {
    if (!ids.has(source.id)) continue;
    const { under, button } = tileOf(source);
    const what = source.state === "running" ? `${source.fps} fps` : stateOf(source);
    under.replaceChildren(
      element("span", source.name, "name"),
      element("span", what, `what ${source.state}`),
      element("span", counted(source.counts) || "no objects", "what"),
    );
    button.setAttribute("aria-label", `${source.name}, ${what}, ${counted(source.counts) || "no objects"}`);
    if (source.id === chosen) showFacts(source);
  }
  const linked = Number(location.hash.slice(1));
  if (location.hash && chosen === null && tiles.has(linked) && !opened) choose(linked);
  opened = true;
  facts($("stages"), Object.entries(now.stages).map(([kind, ms]) => [kind, `${ms} ms`]));
  showNotices(now.notices.map((n) => [n.where ? `${n.where}: ${n.message}` : n.message, n.level]).reverse());
}

// Screen readers read what is put in, and selected text is lost: what stays is left alone.
function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

function showNotices(wanted) {
  const list = $("notices"), texts = new Set(wanted.map(([text]) => text));
  for (const item of [...list.children]) if (!texts.has(item.textContent)) item.remove();
  wanted.forEach(([text, level], i) => {
    const there = list.children[i];
    if (!there || there.textContent !== text) list.insertBefore(element("li", text, level), there || null);
  });
  while (list.children.length > wanted.length) list.lastChild.remove();
}

const stateOf = (source) => (source.reason ? `${source.state}: ${source.reason}` : source.state);

function showFacts(source) {
  $("name").textContent = source.name;
  const rows = [["state", stateOf(source), source.state], ["rate", `${source.fps} fps`],
    ["frames", source.frames], ["in the image", counted(source.counts) || "nothing"]];
  if (source.dropped) rows.push(["dropped", source.dropped]);
  if (source.reconnects) rows.push(["reconnected", source.reconnects]);
  for (const [line, n] of Object.entries(source.crossed)) rows.push([`over ${line}`, n]);
  facts($("facts"), rows);
}

// --- images ----------------------------------------------------------------------------------

async function draw(canvas, jpeg) {
  const image = await createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }));
  if (canvas.width !== image.width || canvas.height !== image.height) {
    canvas.width = image.width;
    canvas.height = image.height;
    canvas.style.setProperty("--ratio", image.width / image.height); // for the full screen
  }
  canvas.getContext("2d").drawImage(image, 0, 0);
  image.close();
}

// The service answers for 64 sources at once: those that run take turns, then come the last ended.
function askedFor() {
  const over = new Set(state.sources.filter((s) => OVER.includes(s.state)).map((s) => s.id));
  const live = [...tiles.keys()].filter((id) => !over.has(id));
  live.sort((a, b) => tiles.get(a).number - tiles.get(b).number);
  const ended = [...tiles.keys()].filter((id) => over.has(id)).sort((a, b) => b - a);
  return [...live, ...ended].slice(0, 64);
}

async function nextImages() {
  const wanted = chosen === null ? askedFor() : [chosen];
  if (!wanted.length || (chosen !== null && held) || document.hidden) return pause(200);
  const seen = Object.fromEntries(wanted.map((id) => [id, tiles.get(id).number]));
  const place = chosen === null ? tiles.get(wanted[0]).canvas : $("image");
  const width = Math.round((place.clientWidth || 640) * Math.min(2, window.devicePixelRatio));
  const data = await (await ask("api/images", { seen, width })).arrayBuffer();
  const length = new DataView(data).getUint32(0);
  const heads = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  let start = 4 + length;
  for (const head of heads) {
    const jpeg = data.slice(start, start + head.bytes);
    start += head.bytes;
    const tile = tiles.get(head.source);
    if (!tile) continue;
    tile.number = head.number;
    if (head.source === chosen && !held) {
      await draw($("image"), jpeg);
      last = head;
      showObjects();
    } else if (chosen === null) {
      await draw(tile.canvas, jpeg);
    }
  }
}

// --- one source --------------------------------------------------------------------------------

function choose(id) {
  const before = chosen;
  chosen = id;
  last = picked = null;
  hold(false);
  $("tiles").hidden = id !== null;
  $("one").hidden = id === null;
  $("objects").replaceChildren();
  $("chosen").replaceChildren();
  for (const tile of tiles.values()) tile.number = 0;
  history.replaceState(null, "", id === null ? location.pathname : `#${id}`);
  if (id !== null) {
    const source = state.sources.find((s) => s.id === id);
    if (source) showFacts(source);
    $("image").focus();
  } else if (before !== null && tiles.has(before)) {
    tiles.get(before).button.focus();
  }
}

function hold(on) {
  held = on;
  $("hold").setAttribute("aria-pressed", String(on));
  const why = state.explains ? "; elsewhere says why there is no box" : "";
  $("hint").textContent = `Click an object for its details${why}. The image ${on ? "is held" : "moves on"}.`;
}

const title = (o) => `${o.label}${o.track === null ? "" : ` #${o.track}`} ${o.confidence.toFixed(2)}`;

function showObjects() {
  const shown = [...$("objects").children];
  last.objects.forEach((one, i) => {
    if (!shown[i]) {
      const item = element("li"), button = element("button");
      button.type = "button";
      button.addEventListener("click", () => last && last.objects[i] && pick(last.objects[i]));
      item.append(button);
      $("objects").append(item);
      shown[i] = item;
    }
    if (shown[i].firstChild.textContent !== title(one)) shown[i].firstChild.textContent = title(one);
  });
  shown.slice(last.objects.length).forEach((item) => item.remove());
}

function pick(one) {
  picked = one;
  const list = element("dl"), crop = element("canvas");
  const rows = [["confidence", one.confidence.toFixed(3)], ["box", one.box.map(Math.round).join(", ")],
    ["model", one.component]];
  if (one.track !== null) rows.push(["track", one.track]);
  if (one.labels.length) rows.push(["classified as", one.labels.join(" ")]);
  for (const [rule, found] of Object.entries(one.rules)) {
    rows.push([rule, Array.isArray(found) ? found.join(", ") : "yes"]);
  }
  facts(list, rows);
  const image = $("image"), scale = image.width / last.width;
  const [left, top, width, height] = one.box.map((v) => v * scale);
  crop.width = Math.max(1, Math.min(600, width));
  crop.height = Math.max(1, (crop.width * height) / Math.max(1, width));
  crop.getContext("2d").drawImage(image, left, top, width, height, 0, 0, crop.width, crop.height);
  showChosen(element("h3", one.label), crop, list);
}

function showChosen(...parts) {
  $("chosen").replaceChildren(...parts);
  $("chosen").scrollIntoView({ block: "nearest" }); // on a narrow page the list is far below it
}

async function explain(x, y) {
  const note = (text) => {
    const said = element("pre");
    // a row of a table stays one line, of which a narrow page shows a part; sentences are broken
    said.append(...text.split("\n").map((line) =>
      element("span", `${line}\n`, /\S {2,}\S/.test(line) ? "row" : undefined)));
    showChosen(element("h3", `At ${Math.round(x)}, ${Math.round(y)}`), said);
  };
  picked = [x, y];
  if (!state.explains) return note("no object is here");
  note("looking at this frame …");
  try {
    note((await (await ask("api/explain", { source: chosen, number: last.number, x, y })).json()).text);
  } catch (error) {
    note(error.message);
  }
}

function at(x, y) {
  const inside = last.objects.filter(({ box: [l, t, w, h] }) => x >= l && y >= t && x < l + w && y < t + h);
  inside.sort((a, b) => a.box[2] * a.box[3] - b.box[2] * b.box[3]);
  return inside[0];
}

$("image").addEventListener("click", (event) => {
  if (!last) return;
  const box = event.target.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * last.width;
  const y = ((event.clientY - box.top) / box.height) * last.height;
  const found = at(x, y);
  if (found) pick(found); else explain(x, y);
});
$("back").addEventListener("click", () => choose(null));
$("hold").addEventListener("click", () => hold(!held));
$("full").addEventListener("click", () => $("image").parentElement.requestFullscreen());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.fullscreenElement) document.exitFullscreen();
  else if (event.key === "Escape" && chosen !== null) choose(null);
  if (event.key === " " && document.activeElement === $("image")) { event.preventDefault(); hold(!held); }
});

// --- the two loops -----------------------------------------------------------------------------

async function forever(work, ms) {
  for (;;) {
    try {
      await work();
    } catch (error) {
      say($("state"), `no answer: ${error.message}`);
      $("figures").textContent = "";
      await pause(1000);
    }
    if (ms) await pause(ms);
  }
}

forever(async () => showState(await (await ask("api/state")).json()), 500);
forever(nextImages, 0);
