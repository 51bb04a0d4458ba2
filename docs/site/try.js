// "Try it" under an example: its commands are sent to the module's arithmetic, and the reader can change them, send more
// and let time pass. The build marks the examples that this can answer (demo/examples/mark.rs).
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

    const UNITS = [[86_400, "d"], [3600, "h"], [60, "min"]];
    const inWords = (seconds) => {
        const parts = UNITS.map(([unit, name], i) => [Math.floor((i ? seconds % UNITS[i - 1][0] : seconds) / unit), name]);
        parts.push([Math.round((seconds % 60) * 100) / 100, "s"]);
        return parts.filter(([number, name]) => number || (name === "s" && seconds < 60)).map((part) => part.join(" ")).join(" ");
    };

    function panel(text, before) {
        // Each call has its microsecond of Unix time; the slider begins at that of the example's first. The examples before
        // it on the page were sent too.
        let earlier = [], calls = [], start = 0, asked = 0;
        const input = made("input", { spellcheck: false, autocomplete: "off", ariaLabel: "Command" });
        const time = made("input", { type: "range", min: 0, max: 0, ariaLabel: "Time" });
        const now = made("output"), replies = made("ol", { ariaLive: "polite", ariaLabel: "Replies" });
        const again = made("button", { type: "button" }, "Start again");
        const form = made("form", { className: "try" }, input, made("button", {}, "Send"), time, now, again, replies);
        const since = ([at]) => (at - start) / 1e6;
        const fail = (fault) => replies.replaceChildren(made("li", { className: "wrong" }, `This browser cannot run it: ${fault}`));
        const show = async () => {
            const number = (asked += 1), ask = await engine(), all = await ask("attempts", { calls: [...earlier, ...calls] });
            if (number !== asked) return;
            const said = all.slice(earlier.length);
            replies.replaceChildren(...said.map(({ said, error, refused }, i) => made("li", { className: error ? "wrong" : refused ? "no" : "" },
                made("b", {}, inWords(since(calls[i]))), ` ${calls[i][1]} `, made("span", {}, `→ ${error ?? said}`))).slice(-12));
            again.hidden = !calls.length;
            // As far as time goes: twice what the longest limit takes to be fully reset, in round steps.
            const ends = said.map(({ reset = 0 }, i) => since(calls[i]) + reset / 1000);
            time.max = Math.max(time.max, 2 * Math.max(5, ...ends));
            time.step = 10 ** Math.floor(Math.log10(time.max / 100));
        };
        const move = (to) => { time.value = to; time.oninput(); };
        time.oninput = () => { now.textContent = inWords(Number(time.value)); };
        // Who goes back in time goes back to what was then.
        form.onsubmit = () => {
            const at = start + Math.round(time.value * 1e6);
            const until = ([when]) => when <= at;
            earlier = earlier.filter(until);
            calls = [...calls.filter(until), [at, input.value.trim().replace(/\s+/g, " ")]];
            show().catch(fail);
            return false;
        };
        again.onclick = () => { earlier = []; calls = []; move(0); show().catch(fail); input.focus(); };
        (async () => {
            [earlier, calls] = await (await engine())("example", { text, before });
            start = calls[0][0];
            input.value = calls.at(-1)[1];
            await show();
            move(since(calls.at(-1)));
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
