// Time on the stage: it plays, pauses, and is where the visitor puts it; and the requests that the visitor sends.
const still = matchMedia("(prefers-reduced-motion: reduce)");
// Milliseconds: what a scene is about plays in ten seconds, and all of a trial in half a minute.
const PLAYS = 10_000, ALL_PLAYS = 30_000;
let playing = false;

function play() {
    const { duration, plays: [from, until] } = scene;
    if (scene.head === until || scene.head >= duration) scene.head = from;
    const end = scene.head < until ? until : duration;
    // Who asked for less motion sees time go on in steps.
    const step = still.matches ? (until - from) / 8 : 1;
    playing = true;
    showPlaying();
    let last = performance.now(), at = scene.head;
    const run = (now) => {
        if (!playing || play.run !== run) return;
        at += (now - last) * (at >= from && at < until ? (until - from) / PLAYS : duration / ALL_PLAYS);
        last = now;
        if (end === until) at = Math.min(at, until);
        scene.head = at >= end ? end : Math.floor(at / step) * step;
        if (at >= end) pause();
        render();
        if (playing) requestAnimationFrame(run);
    };
    play.run = run;
    requestAnimationFrame(run);
}

function pause() {
    playing = false;
    showPlaying();
}

function showPlaying() {
    by("play").textContent = playing ? "Pause" : "Play";
    by("play").dataset.playing = playing;
}

// Plays a scene when it is chosen, unless the visitor prefers reduced motion, or the page is hidden.
function introduce() {
    if (still.matches || document.hidden || view.card) return;
    play();
}

// A request of the visitor's.
function send() {
    if (!scene) return;
    sent.push(Math.round(scene.head));
    replay();
}

function showReplies() {
    const at = sent.at(-1);
    const { asked, sent: places } = scene.traffic;
    const place = at === undefined ? undefined : places.findLast((place) => asked[place] === at);
    const replies = lanes.map((lane) => (place === undefined ? "" : replyInWords(lane, place, at)));
    all(".reply").forEach((element, i) => { element.textContent = replies[i] && `Yours: ${replies[i]}`; });
    by("clear").hidden = !sent.length;
    const told = lanes.map(({ name }, i) => `${name}: ${replies[i]}`).join("; ");
    by("sent").textContent = place === undefined ? "" : `At ${(at / 1e6).toFixed(1)} s, ${told}.`;
}

function replyInWords({ from, retry, remaining, error }, place, at) {
    if (error) return "not with these numbers";
    const left = remaining[place] === null ? "" : `, ${count(remaining[place])} left`;
    if (from[place] > at) return `admitted, waits ${atMost((from[place] - at) / 1000)}${left}`;
    if (from[place] >= 0) return `admitted${left}`;
    if (retry[place] < 0) return "refused for ever";
    return retry[place] ? `refused, retry in ${atMost(retry[place])}` : "refused by chance";
}

function makeStage() {
    by("lanes").replaceChildren(makeLane(0), makeLane(1));
    by("play").onclick = () => (playing ? pause() : play());
    by("head").oninput = ({ target }) => { pause(); scene.head = Number(target.value); render(); };
    by("send").onclick = send;
    by("clear").onclick = () => { sent = []; replay(); by("send").focus(); };
    const again = () => { measure(); render(); };
    new ResizeObserver(again).observe(by("lanes"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
    new MutationObserver(render).observe(root, { attributeFilter: ["data-theme"] });
    // Space is a letter in a field, and presses a button, but for Play, which Enter presses.
    const isOurs = ({ key, target }) => key === " " && target.matches("body, #head, #play, canvas");
    document.addEventListener("keydown", (event) => {
        if (!isOurs(event)) return;
        event.preventDefault();
        if (!event.repeat) send();
    });
    document.addEventListener("keyup", (event) => { if (isOurs(event)) event.preventDefault(); });
}
