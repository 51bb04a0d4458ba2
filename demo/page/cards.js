// The cards, by strategy; each is made when it is shown first.
const cards = new Map();
const familiesOf = (trials) => [...new Set(trials.map(({ family }) => family))];

function showCards() {
    const shown = shownTrials();
    for (const trial of shown) showCard(cards.get(trial.id) ?? makeCard(trial), trial);
    // What stays where it is keeps the focus.
    const now = shown.map(({ id }) => id).join();
    if (by("families").dataset.shown === now) return;
    by("families").dataset.shown = now;
    by("families").replaceChildren(...familiesOf(shown).map((family) => made("section", { className: "of-family" }, made("h2", {}, family),
        made("div", { className: "cards" }, ...shown.filter((trial) => trial.family === family).map(({ id }) => cards.get(id))))));
}

function makeCard({ id, name, tradeOff, page }) {
    const card = cloned("card");
    const [title, trade, button, whose, pin, pinned] = part(card, "h3", ".trade-off", ".command button", ".command .unseen", ".pin", ".pin .unseen");
    const [details, ofWhom, link] = part(card, "details", "summary .unseen", "a");
    [title.textContent, trade.textContent] = [name, tradeOff];
    [whose.textContent, ofWhom.textContent] = [` the command of ${name}`, `: ${name}`];
    button.onclick = () => copy(card);
    pinned.textContent = ` ${name}`;
    pin.onclick = () => pinCard(id);
    details.ontoggle = () => showNumbers(details, trials.find((trial) => trial.id === id));
    Object.assign(link, { textContent: `Read about ${page}`, href: `docs/${page}.html`, hidden: root.dataset.docs === undefined });
    card.dataset.strategy = id;
    cards.set(id, card);
    return card;
}

// It takes the place of the older one of the two.
function pinCard(id) {
    if (view.pins.includes(id)) return;
    change({ pins: [view.pins[1], id] });
    by("copied").textContent = `Pinned: ${view.pins.map((id) => choices.strategies.find((one) => one.id === id).name).join(" beside ")}`;
}

function showCard(card, trial) {
    const [fault, picture, first, more, code, details, pin] = part(card, ".fault", ".picture", "strong", ".more", "code", "details", ".pin");
    pin.ariaPressed = view.pins.includes(trial.id);
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

