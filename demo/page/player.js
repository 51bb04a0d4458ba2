// Time on the stage: it plays, pauses, and is where the visitor puts it; and the requests that the visitor sends.
const still = matchMedia("(prefers-reduced-motion: reduce)");
// A trial plays in half a minute.
const PLAYS = 30_000;
let playing = false;

function play(until = scene.duration) {
    if (scene.head >= scene.duration) scene.head = 0;
    playing = true;
    showPlaying();
    let last = performance.now(), at = scene.head;
    const run = (now) => {
        if (!playing || play.run !== run) return;
        at += ((now - last) * scene.duration) / PLAYS;
        last = now;
        // Who asked for less motion sees time go on in steps.
        const step = still.matches ? scene.period / 4 : 1;
        scene.head = Math.min(until, Math.floor(at / step) * step);
        if (at >= until) pause();
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

// Plays the stampede once, unless the visitor prefers reduced motion, or the page is hidden.
function introduce() {
    if (still.matches || document.hidden || view.card) return;
    const rest = scene.head;
    scene.head = Math.max(0, rest - scene.period * 0.6);
    play(rest);
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
    // Space is a button's own, and a letter in a field.
    document.addEventListener("keydown", (event) => {
        if (event.key !== " " || !event.target.matches("body, #head, canvas")) return;
        event.preventDefault();
        send();
    });
}
