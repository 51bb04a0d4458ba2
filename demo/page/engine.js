// What runs it: a worker, or this page where there is none.
function serve(engine) {
    let ask = async (_, bytes) => { ask = await engine(bytes); };
    const tell = (said) => self.postMessage(said);
    self.onmessage = ({ data }) => ask(...data).then((answer) => tell({ answer }), (fault) => tell({ fault: String(fault) }));
}

async function hire(bytes) {
    const worker = new Worker(URL.createObjectURL(new Blob([`(${serve})(${engine});`], { type: "text/javascript" })));
    const ask = (...question) => new Promise((resolve, reject) => {
        worker.onmessage = ({ data: { answer, fault } }) => (fault ? reject(fault) : resolve(answer));
        worker.onerror = ({ message }) => reject(message);
        worker.postMessage(question);
    });
    await ask("load", bytes);
    return ask;
}

// Without a worker the page stands still while it computes; first it shows that it is busy.
async function alone(bytes) {
    const ask = await engine(bytes);
    return async (...question) => {
        await new Promise((painted) => setTimeout(painted, 20));
        return ask(...question);
    };
}

// One question after another.
function inTurn(server) {
    let last = server.catch(() => {});
    return (...question) => (last = last.catch(() => {}).then(async () => (await server)(...question)));
}

// A replay does not wait for all the trials: it has a worker of its own.
const isWhole = new Promise((whole) => (document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", whole) : whole()));
const bytes = isWhole.then(() => unpack(document.getElementById("wasm").textContent));
const hired = () => inTurn(bytes.then((bytes) => hire(bytes).catch(() => alone(bytes))));
const [forTrials, forReplays] = [hired(), hired()];
const ask = (name, given) => (name === "replay" ? forReplays : forTrials)(name, given);
window.ratelimit = Object.fromEntries(["trials", "replay", "history"].map((name) => [name, (given) => ask(name, given)]));

// Asks the newest question, one at a time. An answer to an older one is not taken.
function newest(name, question, take) {
    let asking = false, stale = false;
    return async () => {
        stale = true;
        if (asking) return;
        asking = true;
        while (stale) {
            stale = false;
            const answer = await ask(name, question()).catch((fault) => ({ error: `This browser cannot run the page: ${fault}` }));
            if (!stale) take(answer);
        }
        asking = false;
    };
}
