// The stage: two strategies on the same requests, side by side, while time plays. Instants are in microseconds.
let scene = null, lanes = [], sent = [];

// A change of shape or period changes the traffic: then time begins anew, and no request has been sent.
const replay = (() => {
    let asked = "";
    const askNewest = newest("replay", () => ({ ...view, strategies: view.pins, sent }), takeReplay);
    return () => {
        const traffic = `${view.shape} ${view.period}`;
        if (traffic !== asked) [sent, asked] = [[], traffic];
        by("stage").ariaBusy = "true";
        askNewest();
    };
})();

function takeReplay({ error, settings, duration, traffic, lanes: told }) {
    if (!error) stage(settings, duration * 1000, traffic, told);
    staged();
}

function stage(settings, duration, traffic, told) {
    const before = scene;
    scene = sceneOf(settings, duration, traffic);
    lanes = told.map((lane, i) => laneOf(lane, i));
    const same = before && before.settings.shape === settings.shape && before.period === scene.period;
    scene.head = same ? Math.min(before.head, scene.duration) : restAt(scene);
    if (!same) pause();
    if (!before) introduce();
    for (const lane of lanes) showLane(lane);
    by("lesson").textContent = lesson();
    showReplies();
    measure();
    render();
}

// In sight are 13 bins: a bit more than one period, or an eighth of everything. Bins end where periods do.
function sceneOf(settings, duration, traffic) {
    const period = settings.period * 1000;
    const bin = (period / 10) * Math.max(1, Math.ceil(duration / 8 / (1.3 * period)));
    return { settings, duration, traffic, period, bin, span: Math.min(13 * bin, duration), edges: settings.shape === "edge", limit: settings.limit, head: 0 };
}

// Where the lesson is to be seen: after the first stampede, or in the midst.
const restAt = ({ edges, period, duration }) => (edges ? period * 1.1 : duration / 2);

function laneOf({ replay, error, ...lane }, place) {
    const shared = scene.settings.shared || scene.settings.shape !== "abuser";
    const told = replay ?? { from: [], remaining: [], retry: [], most: null, figures: null };
    const { asked, users } = scene.traffic;
    const own = told.from.map((from, i) => ({ from, at: asked[i], user: shared ? 0 : users[i], left: told.remaining[i] }));
    return {
        ...lane, ...told, error, place, within: 0, peaks: peaksOf(own, scene.period),
        bins: binned(scene.traffic, told, scene.bin, scene.settings.shape === "abuser" ? 0 : null),
        through: own.filter(({ from }) => from >= 0),
        // With a key each, the first user's is shown: the abuser's.
        levels: own.filter(({ user, left }) => user === 0 && left !== null),
    };
}

// In words.
const PLAIN = {
    "fixed-window-aligned": "a fixed window", "fixed-window": "a fixed window", "sliding-log": "a sliding log",
    "sliding-window": "a sliding window", "token-bucket": "a token bucket", "leaky-bucket": "a leaky bucket",
};
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function lesson() {
    const { settings: { limit, period }, edges } = scene;
    const sentence = ({ id, name, figures, limitsRate }, i) => {
        if (!figures) return "";
        const of = !i && limitsRate ? ` of ${count(limit)}` : "";
        const where = edges && figures.peak >= 1.9 * limit && limitsRate ? " around its edge" : !i ? ` within ${seconds(period)}` : "";
        return `${capital(PLAIN[id] ?? name)}${of} lets ${count(figures.peak)}${ofWhom()} through${where}.`;
    };
    return lanes.map(sentence).join(" ");
}

// Lanes.
function makeLane(place) {
    const lane = cloned("lane");
    const [select, button, canvas] = part(lane, "select", ".command button", "canvas");
    select.ariaLabel = `${place ? "Right" : "Left"} strategy`;
    const options = (label) => choices.strategies.filter(({ family }) => family === label).map(({ id, name }) => made("option", { value: id }, name));
    select.append(...familiesOf(choices.strategies).map((label) => made("optgroup", { label }, ...options(label))));
    select.onchange = () => change({ pins: view.pins.map((id, i) => (i === place ? select.value : id)) });
    button.onclick = () => copy(lane);
    canvas.onclick = send;
    return lane;
}

function showLane({ place, id, name, command, error = "" }) {
    const lane = by("lanes").children[place];
    const [select, code, whose, fault] = part(lane, "select", "code", ".command .unseen", ".fault");
    lane.dataset.lane = id;
    select.value = id;
    [code.textContent, whose.textContent] = [command, ` the command of ${name}`];
    fault.hidden = !error;
    fault.textContent = error && `Not with these numbers: ${error}`;
}

// How large dots can be; after the window or the requests changed.
function measure() {
    const canvas = by("lanes").querySelector("canvas");
    if (!scene || !canvas.clientWidth) return;
    scene.fit = fit(lanes, (scene.bin / scene.span) * canvas.clientWidth, canvas.clientHeight - ABOVE - BELOW);
}

function render() {
    if (!scene?.fit) return;
    const { head, span, duration } = scene;
    scene.start = Math.max(0, Math.min(head - span * 0.875, duration - span));
    for (const lane of lanes) renderLane(lane, by("lanes").children[lane.place]);
    const now = `${(head / 1e6).toFixed(1)} s`;
    Object.assign(by("head"), { max: duration, step: duration / 1200, value: head });
    by("head").setAttribute("aria-valuetext", now);
    by("now").textContent = `${now} of ${duration / 1e6} s`;
}

function renderLane(lane, element) {
    const { head, period, limit } = scene;
    lane.within = mostWithin(lane.through, head - period, head);
    const [big, whose, over, canvas] = part(element, ".big", ".whose", ".times", "canvas");
    const most = lane.peaks.findLast(({ at }) => at <= head)?.most ?? 0, times = lane.limitsRate ? most / limit : 0;
    big.textContent = count(most);
    whose.textContent = `through within ${seconds(period / 1000)}${ofWhom()}`;
    over.textContent = times >= 1.05 ? `▲ ${times.toFixed(1)}× the limit` : "";
    over.hidden = times < 1.05;
    const last = lane.levels.findLast(({ at }) => at <= head);
    lane.left = lane.levels.length ? `remaining: ${count(last?.left ?? lane.most)} of ${count(lane.most)}` : "";
    element.toggleAttribute("data-over", times >= 1.9);
    draw(canvas, lane, scene);
    const words = [`${lane.name} at ${(head / 1e6).toFixed(1)} s: ${count(lane.within)} through in the last ${seconds(period / 1000)}`, lane.left];
    if (!playing) canvas.ariaLabel = words.filter(Boolean).join("; ");
}

const ofWhom = () => (perUser(scene.settings) ? " of one user" : "");

// The most that got through with one key after one instant and until another.
function mostWithin(through, after, until) {
    const counts = new Map([[0, 0]]);
    for (const { from, user } of through) if (from > after && from <= until) counts.set(user, (counts.get(user) ?? 0) + 1);
    return Math.max(...counts.values());
}

// The most that got through with one key within any period so far, from each instant at which that grew.
function peaksOf(requests, period) {
    const users = new Map(), peaks = [];
    let most = 0;
    for (const { from, user } of requests.filter(({ from }) => from >= 0).sort((a, b) => a.from - b.from)) {
        if (!users.has(user)) users.set(user, []);
        const recent = users.get(user);
        recent.push(from);
        while (recent[0] <= from - period) recent.shift();
        if (recent.length > most) peaks.push({ at: from, most: most = recent.length });
    }
    return peaks;
}
