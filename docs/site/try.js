// "Try it" under an example: its commands are sent to the module's engine in memory, and the reader can change them, send more
// and let time pass, also for callers that wait. The build marks the examples that this can answer (demo/examples/mark.rs).
"use strict";

(() => {
    const made = (name, given, ...inside) => {
        const element = Object.assign(document.createElement(name), given);
        element.append(...inside);
        return element;
    };

    // Loaded once, as a script: a page that was opened from a file may not fetch.
    let loaded;
    const engine = () => (loaded ??= new Promise((resolve, reject) => {
        const src = new URL("engine.js", new URL(document.querySelector("script[src*=try]").src)).href;
        document.head.append(made("script", { src, onload: () => resolve(window.ratelimitEngine), onerror: reject }));
    }));

    function panel(text, before) {
        // Each call has its microsecond of Unix time, and so has the next. The slider, in seconds, begins at the example's
        // earliest. The examples before it on the page were sent too.
        let earlier = [], calls = [], start = 0, at = 0, step = 1, asked = 0, shown = "";
        const input = made("input", { spellcheck: false, autocomplete: "off", ariaLabel: "Command" });
        const time = made("input", { type: "range", min: 0, max: 0, step: "any" });
        const now = made("output", {}, "loading…"), replies = made("ol", { ariaLive: "polite", ariaLabel: "Replies" });
        const again = made("button", { type: "button" }, "Start again");
        const form = made("form", { className: "try" }, input, made("button", {}, "Send"), made("label", {}, "Time ", time), now, again, replies);
        const since = (when) => (when - start) / 1e6;
        const ask = async (calls) => (await engine())("attempts", { calls, start, at });
        const fail = (fault) => {
            now.textContent = "";
            replies.replaceChildren(made("li", { className: "wrong" }, `This browser cannot run it: ${fault}`));
        };
        // An error is printed as redis-cli prints it, so it is not taken for a refusal, which is a reply.
        const kind = ({ error, elsewhere, refused }) => (error ? "wrong" : elsewhere ? "elsewhere" : refused ? "no" : "");
        const told = ({ said, error, elsewhere }) => (error ? `(error) ${error}` : elsewhere ?? said);
        const reply = (said) => (said.includes("\n") ? made("pre", {}, said) : made("span", {}, `→ ${said}`));
        // What has come of all calls by now. The slider keeps its range while it is moved.
        const show = async (isMoved) => {
            const number = (asked += 1), all = await ask([...earlier, ...calls]);
            if (number !== asked) return;
            const said = all.replies.slice(earlier.length);
            // What has not changed is not read aloud again.
            if (shown !== (shown = JSON.stringify([calls, said]))) {
                replies.replaceChildren(...said.map((one, i) => made("li", kind(one) ? { className: kind(one) } : {},
                    made("b", {}, one.since), " ", made("code", {}, calls[i][1]), " ", reply(told(one)))).slice(-20));
            }
            again.hidden = !calls.length;
            now.textContent = time.ariaValueText = all.since;
            if (isMoved) return;
            // As far as time goes: twice what the longest limit takes to be fully reset, in round steps.
            const ends = said.map(({ reset = 0 }, i) => since(calls[i][0]) + reset / 1000);
            time.max = Math.max(time.max, 2 * Math.max(5, ...ends));
            step = 10 ** Math.floor(Math.log10(time.max / 100));
            time.value = since(at);
        };
        time.oninput = () => {
            at = start + Math.round(Math.round(time.value / step) * step * 1e6);
            show(true).catch(fail);
        };
        // Who goes back in time goes back to what this example was then. Those before it were sent before, at any time.
        form.onsubmit = () => {
            const line = input.value.trim().replace(/\s+/g, " ");
            if (!line) return false;
            if (at < calls.at(-1)?.[0]) calls = calls.filter(([when]) => when <= at);
            calls.push([at, line]);
            show().catch(fail);
            return false;
        };
        again.onclick = () => { earlier = []; calls = []; at = start; show().catch(fail); input.focus(); };
        (async () => {
            [earlier, calls] = await (await engine())("example", { text, before });
            start = Math.min(...calls.map(([when]) => when));
            input.value = calls.at(-1)[1];
            at = calls.at(-1)[0];
            await show();
        })().catch(fail);
        return form;
    }

    const examples = [...document.querySelectorAll("code.tryable")], texts = examples.map((code) => code.textContent);
    for (const [i, code] of examples.entries()) {
        const open = made("button", { type: "button", className: "try-it" }, "Try it");
        open.onclick = () => { const opened = panel(texts[i], texts.slice(0, i)); open.replaceWith(opened); opened.querySelector("input").focus(); };
        code.closest("pre").after(open);
    }
})();
