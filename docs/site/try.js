// "Try it" under an example: its command can be changed and sent, at whatever second, to the module's arithmetic.
"use strict";

(() => {
    const KNOWN = /^RL\.(TOKENBUCKET|LEAKYBUCKET|GCRA|FIXEDWINDOW|SLIDINGWINDOW|SLIDINGLOG|UNIFORM|SMOOTH|CONCURRENT|SKETCH|SHED|MULTI 1) /;
    const BEYOND = / (BLOCK|HOLD|ADAPT|PEEK) /;
    const UNITS = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400 };
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

    const seconds = (ms) => (0 < ms && ms < 1000 ? `${ms} ms` : `${Math.round(ms / 10) / 100} s`);

    function inWords({ reply, error }) {
        if (error) return error;
        if (reply.length === 2) return `${reply[0] ? "shed" : "not shed"}, by a chance of ${reply[1].toFixed(3)}`;
        if (!Array.isArray(reply)) return `(integer) ${reply}`;
        const [limited, limit, remaining, retry, reset] = reply;
        const first = limited ? (retry < 0 ? "refused for ever" : `refused, retry in ${seconds(retry)}`) : retry ? `admitted, wait for ${seconds(retry)}` : "admitted";
        return `${first}, ${remaining} of ${limit} left, reset in ${seconds(reset)}`;
    }

    // As far as time goes: twice the longest duration of the command.
    function span(command) {
        const found = [...command.matchAll(/\b(\d+)(ms|s|m|h|d)\b/g)].map(([, number, unit]) => number * UNITS[unit]);
        return 2 * Math.max(5, ...found);
    }

    function panel(command) {
        let calls = [];
        const input = made("input", { value: command, spellcheck: false, autocomplete: "off", ariaLabel: "Command" });
        const time = made("input", { type: "range", min: 0, max: span(command), step: span(command) / 240, value: 0, ariaLabel: "Time" });
        const now = made("output", {}, "0 s"), replies = made("ol", { ariaLive: "polite", ariaLabel: "Replies" });
        const again = made("button", { type: "button", hidden: true }, "Start again");
        const form = made("form", { className: "try" }, input, made("button", {}, "Send"), time, now, again, replies);
        const show = async () => {
            const said = await (await engine())("attempts", { calls });
            replies.replaceChildren(...said.map((reply, i) => made("li", { className: reply.error ? "wrong" : reply.reply[0] === 1 ? "no" : "" },
                made("b", {}, seconds(calls[i][0] / 1000)), ` ${calls[i][1]} `, made("span", {}, `→ ${inWords(reply)}`))).slice(-12));
            again.hidden = !calls.length;
        };
        time.oninput = () => { now.textContent = seconds(time.value * 1000); };
        // Who goes back in time goes back to what was then.
        form.onsubmit = () => {
            const at = Math.round(time.value * 1e6);
            calls = [...calls.filter(([before]) => before <= at), [at, input.value.trim().replace(/\s+/g, " ")]];
            show().catch((fault) => replies.replaceChildren(made("li", { className: "wrong" }, `This browser cannot run it: ${fault}`)));
            return false;
        };
        again.onclick = () => { calls = []; time.value = 0; time.oninput(); show(); input.focus(); };
        return form;
    }

    if (!/\/docs\/commands\//.test(location.pathname)) return;
    for (const code of document.querySelectorAll("code.language-redis-cli")) {
        const commands = [...code.textContent.matchAll(/^\S+> (RL\..*)\n(?!\(error\))/gm)].map(([, line]) => line.replace(/ AT \d+/, "").replace(/ *#.*/, ""));
        const first = commands.find((line) => KNOWN.test(line) && !BEYOND.test(`${line} `));
        if (!first) continue;
        const open = made("button", { type: "button", className: "try-it" }, "Try it");
        open.onclick = () => { const opened = panel(first); open.replaceWith(opened); opened.querySelector("input").focus(); engine(); };
        code.closest("pre").after(open);
    }
})();
