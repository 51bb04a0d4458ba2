// What is shown: trials, and the settings that they are of, which may be older than the view's.
let settings, trials = [];

// Words.
const count = (number) => number.toLocaleString("en");
const seconds = (ms) => (ms < 1000 ? `${ms}\u00a0ms` : `${ms / 1000}\u00a0s`);
// Rounded up: no wait is longer than shown.
const atMost = (ms) => seconds(ms < 1000 ? ms : Math.ceil(ms / 100) * 100);
// All and none are only what they are.
function percent({ admitted, offered }) {
    const rounded = Math.round((admitted / offered) * 100) || 0;
    return `${0 < admitted && admitted < offered ? Math.min(99, Math.max(1, rounded)) : rounded}\u00a0%`;
}
const perUser = ({ shape, shared } = settings) => sceneBy(shape).users > 1 && !shared;
const times = ({ limitsRate, figures }) => (limitsRate && figures ? figures.peak / settings.limit : 0);

function inWords(trial) {
    const { all, normal, peak, wait, late, retry, atWork } = trial.figures;
    const over = times(trial) >= 1.05 ? `, ${times(trial).toFixed(1)} times the limit` : "";
    const whose = perUser() ? " of the same user" : "";
    const first = `${count(all.admitted)} of ${count(all.offered)} requests admitted, at most ${count(peak)}${whose} within any ${seconds(settings.period)}${over}.`;
    const more = [`At most ${count(atWork)} at work.`];
    if (normal) more.unshift(`Normal users: ${count(normal.admitted)} of ${count(normal.offered)} admitted.`);
    if (wait) more.push(`Waits of at most ${atMost(wait)}${late ? `, ${count(late)} beyond the end` : ""}.`);
    const sooner = trial.command.includes("CONCURRENT") ? ", sooner if one is released" : "";
    if (retry === null) more.push("Some are refused for ever.");
    else if (retry) more.push(`Refusals: retry after at most ${atMost(retry)}${sooner}.`);
    return [first, more.join(" ")];
}

// Results: of the strategies that are shown.
let drawn = 0;
const askTrials = newest("trials", () => {
    drawn = width();
    return { ...view, width: drawn, strategies: shownIds() };
}, take);

// The stage comes first: trials are asked for once it is drawn.
let waits = false;

function recompute() {
    by("results").ariaBusy = "true";
    if (by("stage").ariaBusy === "true") waits = true; else askTrials();
}

function staged() {
    by("stage").ariaBusy = "false";
    if (waits) setTimeout(askTrials);
    waits = false;
}

function take({ error = "", ...told }) {
    by("results").ariaBusy = "false";
    by("fault").hidden = !error;
    by("fault").textContent = error;
    ({ settings, trials = [] } = told);
    for (const id of ["overview", "legend", "families"]) by(id).hidden = !trials.length;
    show();
}

function show() {
    if (!trials.length) return;
    const { rate, limit, burst, workers, service } = settings;
    const period = seconds(settings.period), offered = count(trials[0].figures?.all.offered ?? 0);
    for (const place of all("[data-say]")) place.textContent = { period, offered, workers }[place.dataset.say];
    root.dataset.shape = settings.shape;
    root.toggleAttribute("data-each", perUser());
    by("said").textContent = `${sceneBy(settings.shape).traffic}, ${rate} a second on average. Allowed: ${limit} per ${period}`
        + `${perUser() ? " and user" : ""}, bursts of ${burst}. Backend: ${workers} workers, ${seconds(service)} each.`;
    showTable();
    showMore();
    showCards();
    cards.get(view.card)?.querySelector("h3").focus();
    cards.get(view.card)?.scrollIntoView();
    view.card = null;
}

// A view may show fewer than have been computed.
const shownTrials = () => trials.filter(({ id }) => shownIds().includes(id));

function showMore() {
    const others = strategies().length - shownIds({ ...view, all: false }).length;
    by("others").textContent = view.all ? "Fewer strategies" : `${others} more strategies`;
    by("others").ariaExpanded = view.all;
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
const farthest = () => Math.max(settings.limit, ...shownTrials().map(({ figures }) => figures?.peak ?? 0));
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
    const shown = shownTrials();
    if (key) shown.sort((a, b) => (sorted.down ? 1 : -1) * (value(b) - value(a)));
    const cell = (trial) => ([, show], i) =>
        made(i ? "td" : "th", i ? {} : { scope: "row" }, ...(i && trial.error ? ["–"] : show(trial.figures, trial)));
    const row = (trial) => made("tr", {}, ...COLUMNS.map(cell(trial)));
    const heading = (family) => made("tr", {}, made("th", { colSpan: COLUMNS.length, scope: "rowgroup" }, family));
    const bodies = familiesOf(shown).map((family) => made("tbody", {}, heading(family), ...shown.filter((trial) => trial.family === family).map(row)));
    const table = by("overview").querySelector("table");
    table.replaceChildren(table.caption, table.tHead, ...(key ? [made("tbody", {}, ...shown.map(row))] : bodies));
    heads().forEach((th, i) => {
        th.ariaSort = key && i === sorted.column ? (sorted.down ? "descending" : "ascending") : null;
        th.firstChild.onclick = () => { sorted = { column: i, down: sorted.column !== i || !sorted.down }; showTable(); };
    });
}

// The clipboard where there is one; else the old way; else by hand.
async function copy(card) {
    const [code, label] = part(card, "code", ".command button span");
    const theOldWay = () => { getSelection().selectAllChildren(code); return document.execCommand("copy"); };
    const done = await Promise.resolve().then(() => navigator.clipboard.writeText(code.textContent)).then(() => true, theOldWay);
    const keys = /Mac|iP/.test(navigator.platform) ? "⌘C" : "Ctrl+C";
    label.textContent = done ? "Copied" : `Press ${keys}`;
    by("copied").textContent = done ? `Copied: ${code.textContent}` : `Not copied, but selected: press ${keys}`;
    setTimeout(() => { label.textContent = "Copy"; }, done ? 2000 : 8000);
}

// In a frame: as high as it is, and on the paper of what is around it.
const framed = window.parent !== window;
root.toggleAttribute("data-framed", framed);
const tellHeight = () => window.parent.postMessage({ ratelimit: "height", pixels: Math.ceil(root.getBoundingClientRect().height) }, "*");
if (framed) new ResizeObserver(tellHeight).observe(root);
window.addEventListener("message", ({ source, data }) => {
    if (source !== window.parent || data?.ratelimit !== "theme") return;
    root.dataset.theme = data.dark ? "dark" : "light";
    if (data.paper) root.style.setProperty("--paper", data.paper);
    tellHeight();
});

const width = () => all(".picture").map(({ clientWidth }) => clientWidth).find(Boolean) ?? 360;
new ResizeObserver(() => {
    if (trials.length && Math.abs(width() - drawn) > 4) recompute();
    else if (trials.length && isSortedUnseen()) showTable();
}).observe(by("families"));

for (const link of all(".docs a")) link.target = "_top";
makeControls();
makeStage();
by("others").onclick = () => change({ all: !view.all });
follow();
window.addEventListener("hashchange", follow);
