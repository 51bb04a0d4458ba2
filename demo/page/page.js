// What runs the module's arithmetic: in a worker, or right here where there is none.
async function engine(bytes) {
    const wasm = (await WebAssembly.instantiate(bytes, {})).instance.exports;
    return async (name, given) => {
        const question = new TextEncoder().encode(JSON.stringify(given));
        const at = wasm.room(question.length);
        new Uint8Array(wasm.memory.buffer, at, question.length).set(question);
        const from = wasm[name]();
        return JSON.parse(new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, from, wasm.told())));
    };
}

function serve(engine) {
    let ask = async (_, bytes) => { ask = await engine(bytes); };
    const tell = (said) => self.postMessage(said);
    self.onmessage = ({ data }) => ask(...data).then((answer) => tell({ answer }), (fault) => tell({ fault: String(fault) }));
}

async function hire(bytes) {
    const worker = new Worker(URL.createObjectURL(new Blob([`(${serve})(${engine});`], { type: "text/javascript" })));
    const ask = (...question) => new Promise((resolve, reject) => {
        worker.onmessage = ({ data: { answer, fault } }) => (fault ? reject(fault) : resolve(answer));
        worker.onerror = ({ message }) => reject(message);
        worker.postMessage(question);
    });
    await ask("load", bytes);
    return ask;
}

async function unpack() {
    const packed = Uint8Array.from(atob(by("wasm").textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

const by = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const filled = (element, inside) => { element.append(...inside); return element; };
const made = (name, given, ...inside) => filled(Object.assign(document.createElement(name), given), inside);
const server = unpack().then((bytes) => hire(bytes).catch(() => engine(bytes)));
// One question after another.
let last = server;
const ask = (...question) => (last = last.catch(() => {}).then(async () => (await server)(...question)));
window.ratelimit = { trials: (given) => ask("trials", given), history: (given) => ask("history", given) };

// The view is what the address says after its #. Controls change that, and so does the back button.
const root = document.documentElement;
const FAMILIES = all("[name=family]").map(({ value }) => value);
let choices, view, trials = [], lastNumber = null;

function read(fragment) {
    const given = new URLSearchParams(fragment);
    const read = { ...choices.defaults, shared: given.get("shared") === "true", family: FAMILIES, card: given.get("card") };
    for (const { name, least, most } of choices.ranges) {
        const number = Math.round(given.get(name)?.trim() || NaN);
        if (!Number.isNaN(number)) read[name] = Math.min(most, Math.max(least, number));
    }
    if (!all("[name=period]").some(({ value }) => Number(value) === read.period)) read.period = choices.defaults.period;
    if (choices.shapes.some(({ id }) => id === given.get("shape"))) read.shape = given.get("shape");
    const family = FAMILIES.filter((family) => given.get("family")?.split(",").includes(family));
    return family.length ? { ...read, family } : read;
}

function write({ shape, shared, family, card, ...numbers }) {
    const changed = Object.entries(numbers).filter(([name, value]) => value !== choices.defaults[name]);
    const words = [["shape", shape], ...changed];
    if (shared) words.push(["shared", true]);
    if (family.length < FAMILIES.length) words.push(["family", family]);
    if (card) words.push(["card", card]);
    return `#${words.map((word) => word.join("=")).join("&")}`;
}

// Another value of the same number replaces the view; everything else is a view to come back to.
function change(changes, number = null) {
    const fragment = write({ ...view, ...changes, card: null });
    if (fragment === write({ ...view, card: null })) return showControls();
    if (number && number === lastNumber) location.replace(fragment);
    else location.hash = fragment;
    lastNumber = number;
}

function follow() {
    const question = ({ family, card, ...settings } = {}) => JSON.stringify(settings);
    const before = question(view);
    view = read(location.hash.slice(1));
    showControls();
    if (question(view) === before) show(); else recompute();
}

// Controls.
const inputs = (name) => all(`.number [name=${name}], [data-of=${name}]`);

function makeControls() {
    const option = ({ id, title }) => made("label", {}, made("input", { type: "radio", name: "shape", value: id }), title);
    by("shape").querySelector(".options").append(...choices.shapes.map(option));
    for (const { name, least: min, most: max } of choices.ranges) for (const input of inputs(name)) Object.assign(input, { min, max });
    const form = by("controls");
    form.oninput = ({ target }) => (target.closest(".number") ? setNumber(target) : choose(target));
    form.onchange = ({ target }) => { if (!target.value || !target.validity.valid) showControls(); };
    form.onreset = () => { change({ ...choices.defaults, family: FAMILIES }); return false; };
}

function setNumber(input) {
    const name = input.name || input.dataset.of;
    clearTimeout(setNumber.soon);
    if (!input.value || !input.validity.valid) return;
    for (const other of inputs(name)) if (other !== input) other.value = input.value;
    setNumber.soon = setTimeout(() => change({ [name]: Number(input.value) }, name), 150);
}

function choose({ name, value }) {
    const checked = all("[name=family]:checked").map(({ value }) => value);
    const values = { shape: value, shared: value === "true", period: Number(value), family: checked.length ? checked : FAMILIES };
    change({ [name]: values[name] });
}

function showControls() {
    for (const { name } of choices.ranges) for (const input of inputs(name)) input.value = view[name];
    for (const input of all("[type=radio]")) input.checked = input.value === String(view[input.name]);
    for (const input of all("[name=family]")) input.checked = view.family.includes(input.value);
    by("shape").querySelector(".story").textContent = shape().story;
    by("shared").hidden = view.shape !== "abuser";
}

// Words.
const shape = () => choices.shapes.find(({ id }) => id === view.shape);
const count = (number) => number.toLocaleString("en");
const seconds = (ms) => (ms < 1000 ? `${ms}\u00a0ms` : `${+(ms / 1000).toFixed(1)}\u00a0s`);
const percent = ({ admitted, offered }) => `${offered ? Math.round((admitted / offered) * 100) : 0}\u00a0%`;
const perUser = () => view.shape === "abuser" && !view.shared;
const times = ({ limitsRate, figures }) => (limitsRate && figures ? figures.peak / view.limit : 0);

function inWords(trial) {
    const { all, normal, peak, wait, late, retry, atWork } = trial.figures;
    const over = times(trial) >= 1.05 ? `, ${times(trial).toFixed(1)} times the limit` : "";
    const whose = perUser() ? " of one user" : "";
    const first = `${count(all.admitted)} of ${count(all.offered)} requests admitted, at most ${count(peak)}${whose} within any ${seconds(view.period)}${over}.`;
    const more = [`At most ${count(atWork)} at work.`];
    if (normal) more.unshift(`Normal users: ${count(normal.admitted)} of ${count(normal.offered)} admitted.`);
    if (wait) more.push(`Waits of at most ${seconds(wait)}${late ? `, ${count(late)} beyond the end` : ""}.`);
    if (retry) more.push(retry < 0 ? "Some are refused for ever." : `Refusals: retry after at most ${seconds(retry)}.`);
    return [first, more.join(" ")];
}

// Results. One question is asked at a time, and an answer to an older one than the last is not shown.
let asking = false, stale = false, drawn = 0;
async function recompute() {
    stale = true;
    if (asking) return;
    asking = true;
    by("results").ariaBusy = "true";
    while (stale) {
        stale = false;
        drawn = width();
        await new Promise((painted) => setTimeout(painted, 20)); // Or it would not look busy where there is no worker.
        const answer = await ask("trials", { ...view, width: drawn }).catch((fault) => ({ error: String(fault) }));
        if (!stale) take(answer);
    }
    asking = false;
}

function take({ error = "", trials: told = [] }) {
    by("results").ariaBusy = "false";
    by("fault").hidden = !error;
    by("fault").textContent = error;
    trials = told;
    for (const id of ["overview", "legend", "families"]) by(id).hidden = !trials.length;
    if (trials.length && !cards.size) makeCards();
    if (trials.length) show();
}

function show() {
    const period = seconds(view.period), offered = count(trials[0]?.figures?.all.offered ?? 0);
    for (const place of all("[data-say]")) place.textContent = { period, offered, workers: view.workers }[place.dataset.say];
    root.dataset.shape = view.shape;
    root.toggleAttribute("data-each", perUser());
    by("said").textContent = `${shape().title}, ${view.rate} a second on average. Allowed: ${view.limit} per ${period}`
        + `${perUser() ? " and user" : ""}, bursts of ${view.burst}. Backend: ${view.workers} workers, ${seconds(view.service)} each.`;
    showTable();
    for (const trial of trials) showCard(cards.get(trial.id), trial);
    for (const family of FAMILIES) by(family).hidden = !view.family.includes(family);
    cards.get(view.card)?.querySelector("h3").focus();
    cards.get(view.card)?.scrollIntoView();
    view.card = null;
}

// The table. By its columns: what it is sorted by, and what it shows.
const COLUMNS = [
    [null, (_, { id, name }) => [made("a", { href: write({ ...view, card: id }), onclick: again }, name)]],
    [({ all }) => all.admitted, ({ all }) => [count(all.admitted), made("span", { className: "of" }, percent(all)), bar(all.admitted / all.offered)]],
    [({ peak }) => peak, ({ peak }, trial) => [count(peak), overshoot(trial), bar(peak / farthest(), trial.limitsRate && view.limit / farthest())]],
    [({ wait }) => wait, ({ wait }) => [wait ? seconds(wait) : "none"]],
    [({ atWork }) => atWork, ({ atWork }) => [count(atWork)]],
    [({ normal }) => normal?.admitted ?? 0, ({ normal }) => [normal ? percent(normal) : ""]],
];
const again = ({ target }) => { if (target.href === location.href) follow(); };
const farthest = () => Math.max(view.limit, ...trials.map(({ figures }) => figures?.peak ?? 0));
let sorted = { column: 0, down: true };

const bar = (part, limit) => made("i", {
    className: limit ? "bar to-limit" : "bar", ariaHidden: "true", style: `--part: ${part || 0}; --limit: ${limit || 0}`,
});

function overshoot(trial) {
    const text = times(trial) >= 1.05 ? `${times(trial).toFixed(1)}×` : "";
    return times(trial) >= 1.9 ? made("b", { className: "times" }, `▲ ${text}`) : made("span", { className: "times" }, text);
}

function showTable() {
    const [key] = COLUMNS[sorted.column];
    const value = ({ figures }) => (figures ? key(figures) : -1);
    const shown = trials.filter(({ family }) => view.family.includes(family));
    if (key) shown.sort((a, b) => (sorted.down ? 1 : -1) * (value(b) - value(a)));
    const cell = (trial) => ([, show], i) =>
        made(i ? "td" : "th", i ? {} : { scope: "row" }, ...(i && trial.error ? ["–"] : show(trial.figures, trial)));
    const row = (trial) => made("tr", {}, ...COLUMNS.map(cell(trial)));
    const heading = (family) => made("tr", {}, made("th", { colSpan: COLUMNS.length, scope: "rowgroup" }, family));
    const bodies = view.family.map((family) => made("tbody", {}, heading(family), ...shown.filter((trial) => trial.family === family).map(row)));
    const table = by("overview").querySelector("table");
    table.replaceChildren(table.caption, table.tHead, ...(key ? [made("tbody", {}, ...shown.map(row))] : bodies));
    all("th", table.tHead).forEach((th, i) => {
        th.ariaSort = key && i === sorted.column ? (sorted.down ? "descending" : "ascending") : null;
        th.firstChild.onclick = () => { sorted = { column: i, down: sorted.column !== i || !sorted.down }; showTable(); };
    });
}

// The cards.
const cards = new Map();
const framed = window.parent !== window;
const part = (card, ...selectors) => selectors.map((selector) => card.querySelector(selector));

function makeCards() {
    const family = (family) => made("section", { id: family, className: "of-family" }, made("h2", {}, family),
        made("div", { className: "cards" }, ...trials.filter((trial) => trial.family === family).map(makeCard)));
    by("families").replaceChildren(...FAMILIES.map(family));
}

function makeCard({ id, name, tradeOff, page }) {
    const card = by("card").content.cloneNode(true).firstElementChild;
    const [title, trade, whose, button, details, link] = part(card, "h3", ".trade-off", ".unseen", "button", "details", "a");
    [title.textContent, trade.textContent, whose.textContent] = [name, tradeOff, ` the command of ${name}`];
    button.onclick = () => copy(card);
    details.ontoggle = () => showNumbers(details, trials.find((trial) => trial.id === id));
    Object.assign(link, { textContent: `Read about ${page}`, href: `docs/${page}.html`, hidden: !framed && location.protocol === "file:" });
    card.dataset.strategy = id;
    cards.set(id, card);
    return card;
}

function showCard(card, trial) {
    const [fault, picture, first, more, code, details] = part(card, ".fault", ".picture", "strong", ".more", "code", "details");
    const words = trial.error ? ["", ""] : inWords(trial);
    fault.hidden = !trial.error;
    fault.textContent = trial.error ? `Not with these numbers: ${trial.error}` : "";
    picture.innerHTML = trial.svg ?? "";
    picture.setAttribute("aria-label", `${trial.name}: ${words[0] || trial.error}`);
    [first.textContent, more.textContent, code.textContent] = [...words, trial.command];
    showNumbers(details, trial);
}

// A twentieth of the time in each row.
function showNumbers(details, { series }) {
    details.hidden = !series;
    if (!details.open || !series) return;
    const sum = (...counts) => counts.reduce((a, b) => a + b);
    const columns = [["offered", sum], ["through", sum], ["abuser", sum], ["within", Math.max], ["atWork", Math.max]];
    const rows = Array.from({ length: 20 }, (_, i) => {
        const cells = columns.map(([name, join]) => made("td", {}, join(...series[name].slice(i * 6, i * 6 + 6))));
        return made("tr", {}, made("th", { scope: "row" }, seconds(i * 6 * series.slot)), ...cells);
    });
    details.querySelector("tbody").replaceChildren(...rows);
}

async function copy(card) {
    const [code, label] = part(card, "code", "button span");
    const byHand = () => { getSelection().selectAllChildren(code); document.execCommand("copy"); };
    await (navigator.clipboard?.writeText(code.textContent) ?? Promise.reject()).catch(byHand);
    by("said").textContent = `Copied: ${code.textContent}`;
    label.textContent = "Copied";
    setTimeout(() => { label.textContent = "Copy"; }, 2000);
}

// In a frame: as high as it is, and as dark as what is around it.
root.toggleAttribute("data-framed", framed);
const tellHeight = () => window.parent.postMessage({ ratelimit: "height", pixels: Math.ceil(root.getBoundingClientRect().height) }, "*");
if (framed) new ResizeObserver(tellHeight).observe(root);
window.addEventListener("message", ({ source, data }) => {
    if (source === window.parent && data?.ratelimit === "theme") root.dataset.theme = data.dark ? "dark" : "light";
});

const width = () => all(".picture").map(({ clientWidth }) => clientWidth).find(Boolean) ?? 360;
new ResizeObserver(() => { if (trials.length && Math.abs(width() - drawn) > 4) recompute(); }).observe(by("families"));

ask("choices", null).then((told) => {
    choices = told;
    makeControls();
    follow();
    window.addEventListener("hashchange", follow);
}).catch((fault) => take({ error: `This browser cannot run the page: ${fault}` }));
