// What is shown: trials, and the settings that they are of, which may be older than the view's.
let settings, trials = [];

// Words.
const count = (number) => number.toLocaleString("en");
const seconds = (ms) => (ms < 1000 ? `${ms}\u00a0ms` : `${ms / 1000}\u00a0s`);
// Rounded up, so that nobody waits for longer.
const atMost = (ms) => seconds(ms < 1000 ? ms : Math.ceil(ms / 100) * 100);
// All and none are only what they are.
function percent({ admitted, offered }) {
    const rounded = Math.round((admitted / offered) * 100) || 0;
    return `${0 < admitted && admitted < offered ? Math.min(99, Math.max(1, rounded)) : rounded}\u00a0%`;
}
const perUser = () => settings.shape === "abuser" && !settings.shared;
const times = ({ limitsRate, figures }) => (limitsRate && figures ? figures.peak / settings.limit : 0);

function inWords(trial) {
    const { all, normal, peak, wait, late, retry, atWork } = trial.figures;
    const over = times(trial) >= 1.05 ? `, ${times(trial).toFixed(1)} times the limit` : "";
    const whose = perUser() ? " of one user" : "";
    const first = `${count(all.admitted)} of ${count(all.offered)} requests admitted, at most ${count(peak)}${whose} within any ${seconds(settings.period)}${over}.`;
    const more = [`At most ${count(atWork)} at work.`];
    if (normal) more.unshift(`Normal users: ${count(normal.admitted)} of ${count(normal.offered)} admitted.`);
    if (wait) more.push(`Waits of at most ${atMost(wait)}${late ? `, ${count(late)} beyond the end` : ""}.`);
    const sooner = trial.command.includes("CONCURRENT") ? ", sooner if one is released" : "";
    if (retry === null) more.push("Some are refused for ever.");
    else if (retry) more.push(`Refusals: retry after at most ${atMost(retry)}${sooner}.`);
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

function take({ error = "", ...told }) {
    by("results").ariaBusy = "false";
    by("fault").hidden = !error;
    by("fault").textContent = error;
    ({ settings, trials = [] } = told);
    for (const id of ["overview", "legend", "families"]) by(id).hidden = !trials.length;
    if (trials.length && !cards.size) makeCards();
    show();
}

function show() {
    if (!trials.length) return;
    const { rate, limit, burst, workers, service } = settings;
    const period = seconds(settings.period), offered = count(trials[0].figures?.all.offered ?? 0);
    for (const place of all("[data-say]")) place.textContent = { period, offered, workers }[place.dataset.say];
    root.dataset.shape = settings.shape;
    root.toggleAttribute("data-each", perUser());
    by("said").textContent = `${shape(settings).title}, ${rate} a second on average. Allowed: ${limit} per ${period}`
        + `${perUser() ? " and user" : ""}, bursts of ${burst}. Backend: ${workers} workers, ${seconds(service)} each.`;
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
    [({ peak }) => peak, ({ peak }, trial) => [count(peak), overshoot(trial), bar(peak / farthest(), trial.limitsRate && settings.limit / farthest())]],
    [({ wait }) => wait, ({ wait }) => [wait ? atMost(wait) : "none"]],
    [({ atWork }) => atWork, ({ atWork }) => [count(atWork)]],
    [({ normal }) => normal?.admitted ?? 0, ({ normal }) => [normal ? percent(normal) : ""]],
];
const again = ({ target }) => { if (target.href === location.href) follow(); };
const farthest = () => Math.max(settings.limit, ...trials.map(({ figures }) => figures?.peak ?? 0));
const heads = () => all("#overview thead th");
const isSortedUnseen = () => getComputedStyle(heads()[sorted.column]).display === "none";
const UNSORTED = { column: 0, down: true };
let sorted = UNSORTED;

const bar = (part, limit) => made("i", {
    className: limit ? "bar to-limit" : "bar", ariaHidden: "true", style: `--part: ${part || 0}; --limit: ${limit || 0}`,
});

function overshoot(trial) {
    const text = times(trial) >= 1.05 ? `${times(trial).toFixed(1)}×` : "";
    return times(trial) >= 1.9 ? made("b", { className: "times" }, `▲ ${text}`) : made("span", { className: "times" }, text);
}

function showTable() {
    if (isSortedUnseen()) sorted = UNSORTED;
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
    heads().forEach((th, i) => {
        th.ariaSort = key && i === sorted.column ? (sorted.down ? "descending" : "ascending") : null;
        th.firstChild.onclick = () => { sorted = { column: i, down: sorted.column !== i || !sorted.down }; showTable(); };
    });
}

// The cards.
const cards = new Map();
const framed = window.parent !== window;

function makeCards() {
    const family = (family) => made("section", { id: family, className: "of-family" }, made("h2", {}, family),
        made("div", { className: "cards" }, ...trials.filter((trial) => trial.family === family).map(makeCard)));
    by("families").replaceChildren(...FAMILIES.map(family));
}

function makeCard({ id, name, tradeOff, page }) {
    const card = cloned("card");
    const [title, trade, button, whose] = part(card, "h3", ".trade-off", "button", "button .unseen");
    const [details, ofWhom, link] = part(card, "details", "summary .unseen", "a");
    [title.textContent, trade.textContent] = [name, tradeOff];
    [whose.textContent, ofWhom.textContent] = [` the command of ${name}`, `: ${name}`];
    button.onclick = () => copy(card);
    details.ontoggle = () => showNumbers(details, trials.find((trial) => trial.id === id));
    Object.assign(link, { textContent: `Read about ${page}`, href: `docs/${page}.html`, hidden: root.dataset.docs === undefined });
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

// The clipboard where there is one; else the old way; else by hand.
async function copy(card) {
    const [code, label] = part(card, "code", "button span");
    const theOldWay = () => { getSelection().selectAllChildren(code); return document.execCommand("copy"); };
    const done = await Promise.resolve().then(() => navigator.clipboard.writeText(code.textContent)).then(() => true, theOldWay);
    const keys = /Mac|iP/.test(navigator.platform) ? "⌘C" : "Ctrl+C";
    label.textContent = done ? "Copied" : `Press ${keys}`;
    by("copied").textContent = done ? `Copied: ${code.textContent}` : `Not copied, but selected: press ${keys}`;
    setTimeout(() => { label.textContent = "Copy"; }, done ? 2000 : 8000);
}

// In a frame: as high as it is, and as dark as what is around it.
root.toggleAttribute("data-framed", framed);
const tellHeight = () => window.parent.postMessage({ ratelimit: "height", pixels: Math.ceil(root.getBoundingClientRect().height) }, "*");
if (framed) new ResizeObserver(tellHeight).observe(root);
window.addEventListener("message", ({ source, data }) => {
    if (source === window.parent && data?.ratelimit === "theme") root.dataset.theme = data.dark ? "dark" : "light";
});

const width = () => all(".picture").map(({ clientWidth }) => clientWidth).find(Boolean) ?? 360;
new ResizeObserver(() => {
    if (trials.length && Math.abs(width() - drawn) > 4) recompute();
    else if (trials.length && isSortedUnseen()) showTable();
}).observe(by("families"));

ask("choices", null).then((told) => {
    choices = told;
    makeControls();
    follow();
    window.addEventListener("hashchange", follow);
}).catch((fault) => take({ error: `This browser cannot run the page: ${fault}` }));
