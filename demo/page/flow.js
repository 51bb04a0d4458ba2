// Requests on their way: from the left to the limiter, and from there to the backend, or back.

// Where the limiter stands, of the width; and the size of a place at the backend, in pixels.
const GATE = 0.42, PLACE = 9;

// Requests are spread over the height, each always at the same place.
const heightOf = (number) => (number * 0.618034) % 1;
const radiusOf = (cost) => (cost === 1 ? 3.5 : 1.5 + Math.sqrt(cost));

function drawFlow(canvas, lane, { head, travel, traffic: { asked, users, costs }, settings, works, abuser }) {
    const { pen, width, height, colour } = blank(canvas);
    const gate = width * GATE, backend = gate + (width - gate) * 0.5;
    const y = (number) => 20 + heightOf(number) * (height - 30);
    drawGate(pen, gate, width, height, colour, works);
    const rows = Math.floor((height - 22) / PLACE);
    let places = 0, queue = 0;
    lane.from.forEach((from, i) => {
        const come = (head - asked[i]) / travel, own = users[i] === abuser ? colour.abuser : colour.through;
        const radius = radiusOf(costs[i]);
        if (come < -1) return;
        if (come < 0) return dot(pen, gate * (1 + come), y(i), radius, colour.soft);
        if (from < 0) {
            if (come < 1) bounced(pen, gate * (1 - 0.8 * come), y(i) + come * come * (height - y(i)) * 0.6, 1 - come, colour.mark);
            return;
        }
        const gone = (head - from) / travel;
        if (gone < 0) return ring(pen, gate - 7 - Math.floor(queue / 7) * 8, 20 + (queue++ % 7) * ((height - 30) / 7), own);
        if (!works) { if (gone < 1) dot(pen, gate + (width - gate) * gone, y(i), radius, own); return; }
        if (head >= lane.until[i]) return;
        const place = places++;
        const [left, top] = [backend + Math.floor(place / rows) * PLACE, 20 + (place % rows) * PLACE];
        const way = Math.min(1, gone * 6);
        dot(pen, gate + (left - gate) * way, y(i) + (top - y(i)) * way, 3.5, place >= settings.workers && way === 1 ? colour.mark : own);
    });
    if (!works) return;
    const full = Math.min(settings.workers, rows * 20);
    pen.strokeStyle = colour.edge;
    pen.lineWidth = 1;
    for (let place = 0; place < full; place += 1) {
        pen.strokeRect(backend + Math.floor(place / rows) * PLACE - 4.5, 15.5 + (place % rows) * PLACE, PLACE, PLACE);
    }
}

function drawGate(pen, gate, width, height, colour, works) {
    pen.fillStyle = colour.soft;
    pen.textAlign = "left";
    pen.fillText("requests", 0, 10);
    pen.textAlign = "center";
    pen.fillText("limiter", gate, 10);
    pen.textAlign = "right";
    pen.fillText(works ? "backend" : "got through", width, 10);
    pen.fillStyle = colour.ink;
    pen.fillRect(gate - 1.5, 15, 3, height - 15);
}

function dot(pen, x, y, radius, fill) {
    pen.fillStyle = fill;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 7);
    pen.fill();
}

function ring(pen, x, y, stroke) {
    pen.strokeStyle = stroke;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.arc(x, y, 3, 0, 7);
    pen.stroke();
}

function bounced(pen, x, y, alpha, stroke) {
    pen.globalAlpha = alpha;
    pen.strokeStyle = stroke;
    crosses(pen, [[null, x, y]], 3.5);
    pen.globalAlpha = 1;
}
