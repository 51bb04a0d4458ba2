// The stage: two strategies on the same requests, side by side, while time plays. Instants are in microseconds.
let scene = null, lanes = [], sent = [];

// A change of shape or period changes the traffic: then time begins anew, and no request has been sent.
const replay = (() => {
    let asked = "";
    const askNewest = newest("replay", () => ({ ...view, strategies: view.pins, sent }), takeReplay);
    return () => {
        const traffic = `${view.shape} ${view.period}`;
        const isFirst = !asked && isFirstView();
        if (traffic !== asked) [sent, asked] = [[], traffic];
        by("stage").ariaBusy = "true";
        if (isFirst) takeReplay(firstReplay); else askNewest();
    };
})();

// Where the engine does not run, the stage goes, because its controls would do nothing; the fault is shown for the trials.
function takeReplay({ error, settings, duration, traffic, lanes: told, lesson }) {
    if (error) {
        pause();
        scene = null;
    } else {
        stage(settings, duration * 1000, traffic, told, lesson);
    }
    by("stage").hidden = !scene;
    staged();
}

function stage(settings, duration, traffic, told, lesson) {
    const before = scene;
    scene = sceneOf(settings, duration, traffic);
    lanes = told.map((lane, i) => laneOf(lane, i));
    const same = before && before.settings.shape === settings.shape && before.period === scene.period;
    scene.head = same ? Math.min(before.head, scene.duration) : scene.plays[1];
    if (!same) pause();
    if (!same) introduce();
    for (const lane of lanes) showLane(lane);
    by("lesson").textContent = lesson;
    showReplies();
    measure();
    render();
}

// In sight are 13 bins: a bit more than one period, or an eighth of everything. Bins end where periods do.
function sceneOf(settings, duration, traffic) {
    const period = settings.period * 1000;
    const { users, plays } = sceneBy(settings.shape);
    const [from, until] = plays.map((part) => Math.round(part * duration));
    const shared = settings.shared || users === 1;
    const bin = (period / 10) * Math.max(1, Math.ceil(duration / 8 / (1.3 * period)));
    return {
        settings, duration, traffic, period, bin, span: Math.min(13 * bin, duration), limit: settings.limit, head: 0, plays: [from, until],
        // A request takes about a second to the limiter.
        travel: (until - from) / 12, edges: ["edge", "crowd"].includes(settings.shape),
        works: ["slow", "tenants", "rising"].includes(settings.shape), abuser: ["abuser", "tenants"].includes(settings.shape) ? 0 : null,
        shared, ofUser: shared ? "" : " of the same user",
    };
}

function laneOf({ replay, error, ...lane }, place) {
    const told = replay ?? { from: [], until: [], remaining: [], retry: [], headline: [], bound: null, unit: "", limit: [] };
    const { asked, users, costs } = scene.traffic;
    const own = told.from.map((from, i) => ({ from, at: asked[i], user: scene.shared ? 0 : users[i], cost: costs[i], left: told.remaining[i], limit: told.limit[i] }));
    return {
        ...lane, ...told, error, place, within: 0, most: Math.max(...told.limit),
        bins: binned(scene.traffic, told, scene.bin, scene.abuser),
        through: own.filter(({ from }) => from >= 0),
        // With a key each, the first user's is shown, which is the abuser if there is one.
        levels: own.filter(({ user, left }) => user === 0 && left !== null),
    };
}

// Lanes.
function makeLane(place) {
    const lane = cloned("lane");
    const [select, button] = part(lane, "select", ".command button");
    select.ariaLabel = `${place ? "Right" : "Left"} strategy`;
    const options = (label) => choices.strategies.filter(({ family }) => family === label).map(({ id, name }) => made("option", { value: id }, name));
    select.append(...familiesOf(choices.strategies).map((label) => made("optgroup", { label }, ...options(label))));
    select.onchange = () => change({ pins: view.pins.map((id, i) => (i === place ? select.value : id)) });
    button.onclick = () => copy(lane);
    for (const canvas of all("canvas", lane)) canvas.onclick = send;
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
    const canvas = by("lanes").querySelector(".past");
    if (!scene || !canvas.clientWidth) return;
    scene.fit = fit(lanes, (scene.bin / scene.span) * canvas.clientWidth, canvas.clientHeight - ABOVE - BELOW);
}

function render() {
    if (!scene?.fit) return;
    const { head, span, duration, plays: [from, until] } = scene;
    scene.start = Math.max(0, Math.min(head - span * 0.875, duration - span));
    for (const lane of lanes) renderLane(lane, by("lanes").children[lane.place]);
    const now = `${(head / 1e6).toFixed(1)} s`;
    // A round step, of which the instants that tests and scenes name are multiples.
    const step = Math.min(duration / 1200, 10 ** Math.ceil(Math.log10((until - from) / 24)));
    Object.assign(by("head"), { max: duration, step, value: head });
    by("head").setAttribute("aria-valuetext", now);
    by("now").textContent = `${now} of ${duration / 1e6} s`;
}

function renderLane(lane, element) {
    const { head, period, settings } = scene;
    lane.within = mostWithin(lane.through, head - period, head);
    const [big, whose, over, flow, canvas] = part(element, ".big", ".whose", ".times", ".flow", ".past");
    const [, most] = lane.headline.findLast(([at]) => at <= head) ?? [0, 0], times = lane.bound ? most / lane.bound : 0;
    // What is said to be over the limit looks so.
    const isOver = times >= 1.05;
    big.textContent = count(most);
    whose.textContent = `${lane.unit}${most < (lane.headline.at(-1)?.[1] ?? 0) ? ", so far" : ""}`;
    over.textContent = isOver ? `▲ ${times.toFixed(1)}× the ${settings.shape === "slow" ? "workers" : "limit"}` : "";
    over.hidden = !isOver;
    const last = lane.levels.findLast(({ at }) => at <= head);
    const ofWhom = scene.shared ? "" : scene.abuser === 0 ? "the abuser's " : "the first user's ";
    lane.left = lane.levels.length ? `${ofWhom}remaining: ${count(last?.left ?? lane.limit[0])} of ${count(last?.limit ?? lane.limit[0])}` : "";
    element.toggleAttribute("data-over", isOver);
    drawFlow(flow, lane, scene);
    draw(canvas, lane, scene);
    const words = [`${lane.name} at ${(head / 1e6).toFixed(1)} s: ${count(lane.within)}${scene.ofUser} through in the last ${seconds(period / 1000)}`, lane.left];
    if (!playing) canvas.ariaLabel = words.filter(Boolean).join("; ");
}

// The most, in costs, that got through with one key after one instant and until another.
function mostWithin(through, after, until) {
    const counts = new Map([[0, 0]]);
    for (const { from, user, cost } of through) if (from > after && from <= until) counts.set(user, (counts.get(user) ?? 0) + cost);
    return Math.max(...counts.values());
}
