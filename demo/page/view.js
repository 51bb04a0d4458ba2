// Elements: found, made, and copied from templates.
const by = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const filled = (element, inside) => { element.append(...inside); return element; };
const made = (name, given, ...inside) => filled(Object.assign(document.createElement(name), given), inside);
const cloned = (template) => by(template).content.cloneNode(true).firstElementChild;
const part = (whole, ...selectors) => selectors.map((selector) => whole.querySelector(selector));

// The view is what the address says after its #. Controls change both, and so does the back button. Then what the page
// shows follows the view.
const root = document.documentElement;
// The strategies that are shown at first, beside the two of the scene, which are pinned.
const CHOSEN = ["fixed-window-aligned", "sliding-log", "sliding-window", "token-bucket", "gcra"];
// What can be chosen, and the first scene, which is there before the engine.
const { choices, replay: firstReplay } = JSON.parse(by("first").textContent);
let view;

const strategies = () => choices.strategies.map(({ id }) => id);
const shownIds = (of = view) => strategies().filter((id) => of.all || CHOSEN.includes(id) || of.pins.includes(id));

function read(fragment) {
    const given = new URLSearchParams(fragment);
    const { defaults, pair } = sceneBy(given.get("shape"));
    const read = { ...defaults, shared: given.get("shared") === "true", all: given.get("all") === "true", pins: pair, card: given.get("card") };
    for (const range of choices.ranges) readNumber(range, given.get(range.name), read);
    if (!all("[name=period]").some(({ value }) => Number(value) === read.period)) read.period = defaults.period;
    const pins = given.get("pins")?.split(",") ?? [];
    if (pins.length === 2 && pins.every((id) => strategies().includes(id))) read.pins = pins;
    if (strategies().includes(read.card) && !shownIds(read).includes(read.card)) read.all = true;
    return read;
}

// A number beyond its range becomes the nearest that is within it.
function readNumber(range, text, read) {
    const number = Math.round(text?.trim() || NaN);
    if (Number.isNaN(number)) return;
    read[range.name] = Math.min(range.most, Math.max(range.least, number));
    if (read[range.name] !== number) wrong[range.name] = beyond(range, text, read[range.name]);
}

function write({ shape, shared, pins, all, card, ...numbers }) {
    const { defaults, pair } = sceneBy(shape);
    const words = [["shape", shape], ...Object.entries(numbers).filter(([name, value]) => value !== defaults[name])];
    if (shared) words.push(["shared", true]);
    if (pins.join() !== pair.join()) words.push(["pins", pins]);
    if (all) words.push(["all", true]);
    if (card) words.push(["card", card]);
    return `#${words.map((word) => word.join("=")).join("&")}`;
}

const isFirstView = () => write({ ...view, all: false, card: null }) === write(read(""));

// What the address says; the numbers that changed since then; and those that the last entry of the history is about.
let written = "", typed = new Set(), lastNumbers = "";

// The view changes at once. The address waits until a number has been the same for a moment: a browser refuses to write
// it as often as a slider moves.
function change(changes, number = "") {
    const before = view;
    view = { ...view, ...changes, card: null };
    if (number) typed.add(number);
    clearTimeout(change.soon);
    if (number) change.soon = setTimeout(writeAddress, 150, true);
    else writeAddress(false);
    turn(before);
}

// Other values of the same numbers replace the entry; everything else is a view to come back to.
function writeAddress(onlyNumbers) {
    const fragment = write({ ...view, card: null }), numbers = [...typed].join();
    typed.clear();
    if (fragment === written) return;
    if (onlyNumbers && numbers === lastNumbers) history.replaceState(null, "", fragment);
    else history.pushState(null, "", fragment);
    lastNumbers = onlyNumbers ? numbers : "";
    written = fragment;
}

// Somebody went to another address; not change, which is silent.
function follow() {
    clearTimeout(change.soon);
    [wrong, lastNumbers] = [{}, ""];
    typed.clear();
    const before = view;
    view = read(location.hash.slice(1));
    written = write({ ...view, card: null });
    turn(before);
}

function turn(before) {
    const question = ({ all, card, pins, ...numbers } = {}) => JSON.stringify(numbers);
    const same = question(view) === question(before);
    showControls();
    if (!same || view.pins.join() !== before.pins.join()) replay(before);
    if (same && shownIds().every((id) => trials.some((trial) => trial.id === id))) show(); else recompute();
}

// Controls.
const inputs = (name) => all(`.number [name=${name}], [data-of=${name}]`);
// What is wrong with the numbers in fields, by their names.
let wrong = {};

const beyond = ({ least, most }, text, shown) => `${text} is beyond the range ${least} to ${most}. Shown: ${shown}.`;

function makeControls() {
    for (const scene of choices.scenes) by(scene.number ? "scenes" : "shape").querySelector(".options").append(makeScene(scene));
    by("period").before(...choices.ranges.filter(({ name }) => name !== "period").map(makeNumber));
    const form = by("controls");
    form.oninput = ({ target }) => (target.closest(".number") ? setNumber(target) : choose(target));
    by("scenes").oninput = form.oninput;
    form.onreset = () => { wrong = {}; change({ ...sceneBy(view.shape).defaults, shared: false, pins: sceneBy(view.shape).pair, all: false }); return false; };
}

function makeScene({ id, number, title }) {
    const radio = made("input", { type: "radio", name: "shape", value: id });
    radio.setAttribute("form", "controls");
    return made("label", {}, radio, ...(number ? [made("b", { ariaHidden: "true" }, number)] : []), made("span", {}, title));
}

function makeNumber({ name, label, unit, least: min, most: max }) {
    const number = cloned("number");
    const [title, field, says, slider, fault] = part(number, "label", "[type=number]", ".value span", "[type=range]", ".wrong");
    Object.assign(title, { htmlFor: name, textContent: label });
    Object.assign(field, { id: name, name, min, max });
    field.setAttribute("aria-describedby", `${name}-unit ${name}-wrong`);
    Object.assign(says, { id: `${name}-unit`, textContent: unit });
    Object.assign(slider, { min, max, ariaLabel: `${label}, ${unit}` });
    fault.id = `${name}-wrong`;
    slider.dataset.of = name;
    return number;
}

function setNumber(input) {
    const name = input.name || input.dataset.of;
    delete wrong[name];
    if (input.value && input.validity.valid) return change({ [name]: Number(input.value) }, name);
    const range = choices.ranges.find((range) => range.name === name);
    const { rangeOverflow, rangeUnderflow } = input.validity;
    wrong[name] = rangeOverflow || rangeUnderflow ? beyond(range, input.value, view[name])
        : `A whole number from ${range.least} to ${range.most}. Shown: ${view[name]}.`;
    showWrong(name);
}

function choose({ name, value }) {
    if (name === "shape") return chooseScene(value);
    change({ [name]: name === "shared" ? value === "true" : Number(value) });
}

// Another scene has its own pair and numbers; those that the visitor changed stay.
function chooseScene(id) {
    const [before, { defaults, pair }] = [sceneBy(view.shape).defaults, sceneBy(id)];
    const kept = choices.ranges.map(({ name }) => name).filter((name) => view[name] !== before[name]);
    change({ ...defaults, ...Object.fromEntries(kept.map((name) => [name, view[name]])), shared: false, pins: pair });
}

const sceneBy = (shape) => choices.scenes.find(({ id }) => id === shape) ?? choices.scenes[0];

function showControls() {
    for (const { name } of choices.ranges) {
        // What is wrong stays in its field; the slider has what is shown.
        for (const input of inputs(name)) if (!isUnfinished(input)) input.value = view[name];
        if (by(name)?.name) showWrong(name);
    }
    for (const input of all("[type=radio]")) input.checked = input.value === String(view[input.name]);
    by("story").textContent = sceneBy(view.shape).story;
    by("shared").hidden = view.shape !== "abuser";
}

const isUnfinished = (input) => input.type === "number" && wrong[input.name] && !input.validity.valid;

function showWrong(name) {
    by(`${name}-wrong`).textContent = wrong[name] ?? "";
    by(name).toggleAttribute("aria-invalid", name in wrong);
}
