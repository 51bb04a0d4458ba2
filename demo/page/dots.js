// The picture of one strategy: a dot for each request, those that got through above the line, refused ones below it;
// the period that ends at the play head; and what the last reply said remains.

// Pixels: above the dots, below them, and of the level among that.
const ABOVE = 24, BELOW = 74, LEVEL = 34, FOOT = 20;
const COLOURS = ["ink", "soft", "rule", "edge", "through", "abuser", "mark"];

// Colours as the theme has them: a canvas knows no variables. They are read once for each theme, by its ink.
const themes = new Map();

function colours() {
    const ink = getComputedStyle(document.body).color, probe = by("probe");
    const read = (name) => { probe.style.color = `var(--${name})`; return [name, getComputedStyle(probe).color]; };
    if (!themes.has(ink)) themes.set(ink, Object.fromEntries(COLOURS.map(read)));
    return themes.get(ink);
}

// Requests by bins of time. In a bin, dots stand in the order of their instants.
function binned({ asked, users, sent }, { from }, bin, abuser) {
    const bins = { up: new Map(), down: new Map() };
    const mine = new Set(sent);
    const put = (side, at, dot) => {
        const place = Math.floor(at / bin);
        if (!side.has(place)) side.set(place, []);
        side.get(place).push({ at, ...dot });
    };
    asked.forEach((at, i) => {
        const dot = { mine: mine.has(i), abuser: users[i] === abuser, waited: from[i] > at };
        if (from[i] < 0) put(bins.down, at, dot); else put(bins.up, from[i], { ...dot, asked: at });
    });
    for (const dots of bins.up.values()) dots.sort((a, b) => a.at - b.at);
    return bins;
}

// The largest dots of which the fullest bins of all lanes have room; the same in each lane.
function fit(lanes, binWidth, height) {
    const most = (side) => Math.max(1, ...lanes.flatMap(({ bins }) => [...bins[side].values()].map((dots) => dots.length)));
    const [up, down] = [most("up"), most("down")];
    for (let size = 9; ; size -= 0.1) {
        const columns = Math.max(1, Math.floor((binWidth - 1) / size));
        const rows = Math.ceil(up / columns) + Math.ceil(down / columns);
        if (rows * size <= height || size <= 0.5) return { size, columns, above: Math.ceil(up / columns) * size };
    }
}

// An empty canvas in the pixels of the screen, and what draws on it.
function blank(canvas) {
    const { clientWidth: width, clientHeight: height } = canvas, scale = window.devicePixelRatio || 1;
    Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
    return { pen, width, height, colour: colours() };
}

// Draws a lane as of the play head. `scene` has start and span of what is in sight, in microseconds.
function draw(canvas, lane, scene) {
    const paper = blank(canvas);
    const x = (at) => ((at - scene.start) / scene.span) * paper.width;
    const place = { ...paper, x, axis: ABOVE + scene.fit.above + 3 };
    drawWindow(place, lane, scene);
    drawTime(place, scene);
    drawDots(place, lane, scene);
    drawLevel(place, lane, scene);
    drawHead(place, scene);
}

function drawWindow({ pen, x, width, height, colour }, lane, { head, period, limit, ofUser }) {
    const [left, right] = [Math.max(x(head - period), 1), x(head)];
    pen.fillStyle = pen.strokeStyle = lane.within > limit && lane.bound === limit ? colour.mark : colour.through;
    pen.globalAlpha = 0.1;
    pen.fillRect(left, ABOVE - 6, right - left, height - ABOVE - FOOT + 6);
    pen.globalAlpha = 1;
    pen.lineWidth = 1.5;
    stroke(pen, [[left, ABOVE - 2], [left, ABOVE - 6], [right, ABOVE - 6], [right, ABOVE - 2]]);
    const text = `last ${seconds(period / 1000)}: ${count(lane.within)}${ofUser} through`;
    const fits = right - left >= pen.measureText(text).width;
    pen.textAlign = fits ? "center" : right > width / 2 ? "right" : "left";
    pen.fillText(text, fits ? (left + right) / 2 : right, ABOVE - 11);
}

function drawTime({ pen, x, width, height, colour, axis }, { start, span, period, edges }) {
    pen.lineWidth = 1;
    pen.strokeStyle = colour.edge;
    stroke(pen, [[0, axis], [width, axis]]);
    const step = stepOf(span / 1e6, width / 70) * 1e6;
    pen.fillStyle = colour.soft;
    for (let at = Math.ceil(start / step) * step; at <= start + span; at += step) {
        const text = `${at / 1e6} s`, half = pen.measureText(text).width / 2;
        pen.textAlign = "center";
        pen.fillText(text, Math.min(width - half, Math.max(half, x(at))), height - 5);
    }
    if (!edges) return;
    pen.setLineDash([3, 3]);
    for (let at = Math.ceil(start / period) * period; at <= start + span; at += period) stroke(pen, [[x(at), ABOVE], [x(at), height - FOOT]]);
    pen.setLineDash([]);
}

function drawDots({ pen, x, axis, colour }, { bins }, { head, start, span, bin, fit: { size, columns } }) {
    const gap = (x(bin) - x(0) - columns * size) / 2;
    const spots = (side, seen) => {
        const found = [];
        for (let place = Math.floor(start / bin); place <= (start + span) / bin; place += 1) {
            (side.get(place) ?? []).filter(seen).forEach((dot, i) => found.push([
                dot, x(place * bin) + gap + ((i % columns) + 0.5) * size, (Math.floor(i / columns) + 0.5) * size]));
        }
        return found;
    };
    // A request that waits is drawn already, at the instant at which it will get through.
    const up = spots(bins.up, ({ asked }) => asked <= head).map(([dot, left, high]) => [dot, left, axis - 1 - high]);
    const down = spots(bins.down, ({ at }) => at <= head).map(([dot, left, low]) => [dot, left, axis + 1 + low]);
    const radius = Math.max(size * 0.43, 0.6);
    for (const [abuser, fill] of [[false, colour.through], [true, colour.abuser]]) {
        pen.fillStyle = pen.strokeStyle = fill;
        discs(pen, up.filter(([dot]) => dot.abuser === abuser && !dot.waited), radius);
        rings(pen, up.filter(([dot]) => dot.abuser === abuser && dot.waited), radius);
    }
    pen.strokeStyle = colour.mark;
    crosses(pen, down, radius * 0.8);
    pen.fillStyle = pen.strokeStyle = colour.ink;
    diamonds(pen, [...up, ...down].filter(([dot]) => dot.mine), Math.max(5, radius + 2));
}

function discs(pen, spots, radius) {
    pen.beginPath();
    for (const [, x, y] of spots) { pen.moveTo(x + radius, y); pen.arc(x, y, radius, 0, 7); }
    pen.fill();
}

function rings(pen, spots, radius) {
    const inner = Math.max(radius - 0.5, 0.4);
    pen.lineWidth = Math.min(1.5, radius * 0.7);
    pen.beginPath();
    for (const [, x, y] of spots) { pen.moveTo(x + inner, y); pen.arc(x, y, inner, 0, 7); }
    pen.stroke();
}

function crosses(pen, spots, arm) {
    pen.lineWidth = Math.max(0.8, Math.min(1.6, arm * 0.7));
    pen.beginPath();
    for (const [, x, y] of spots) {
        pen.moveTo(x - arm, y - arm); pen.lineTo(x + arm, y + arm);
        pen.moveTo(x - arm, y + arm); pen.lineTo(x + arm, y - arm);
    }
    pen.stroke();
}

function diamonds(pen, spots, arm) {
    pen.lineWidth = 2;
    for (const [, x, y] of spots) stroke(pen, [[x, y - arm], [x + arm, y], [x, y + arm], [x - arm, y], [x, y - arm], [x + arm, y]]);
}

// What replies said remains, as an area, from each reply to the next one.
function drawLevel({ pen, x, width, height, colour }, { levels, most, left }, { head, start }) {
    const [top, bottom] = [height - FOOT - LEVEL, height - FOOT];
    pen.strokeStyle = colour.rule;
    pen.lineWidth = 1;
    stroke(pen, [[0, bottom], [width, bottom]]);
    if (!levels.length) return;
    const y = (remaining) => bottom - (remaining / Math.max(1, most)) * LEVEL;
    const first = Math.max(0, levels.findLastIndex(({ at }) => at <= start));
    pen.fillStyle = pen.strokeStyle = colour.through;
    pen.beginPath();
    pen.moveTo(x(start), bottom);
    let high = levels[0].at <= start ? levels[first].left : most;
    pen.lineTo(x(start), y(high));
    for (const { at, left: remaining } of levels.slice(first)) {
        if (at > head) break;
        if (at < start) continue;
        pen.lineTo(x(at), y(high));
        pen.lineTo(x(at), y(remaining));
        high = remaining;
    }
    pen.lineTo(x(head), y(high));
    pen.lineTo(x(head), bottom);
    pen.globalAlpha = 0.35;
    pen.fill();
    pen.globalAlpha = 1;
    // Beside the play head, of which it is true, where there is room.
    const fits = pen.measureText(left).width < x(head) - 6;
    pen.textAlign = fits ? "right" : "left";
    pen.fillStyle = colour.soft;
    pen.fillText(left, fits ? x(head) - 5 : 2, top - 5);
}

function drawHead({ pen, x, height, colour }, { head }) {
    pen.strokeStyle = colour.ink;
    pen.lineWidth = 1.5;
    stroke(pen, [[x(head), ABOVE - 8], [x(head), height - FOOT]]);
}

function stroke(pen, points) {
    pen.beginPath();
    points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.stroke();
}

// A round step of which at most so many reach this far.
function stepOf(far, most) {
    const power = 10 ** Math.floor(Math.log10(far / most));
    return [1, 2, 5, 10].map((times) => times * power).find((step) => far / step <= most) ?? 10 * power;
}
