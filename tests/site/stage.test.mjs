// The comparing page's stage: two strategies on the same requests, while time plays.
import assert from "node:assert/strict";
import { test } from "node:test";

import { card, count, fragment, visit } from "./page.mjs";

const PINS = ["fixed-window-aligned", "sliding-log"];
const lane = (tab, place) => tab.locator(".lane").nth(place);
const plain = (text) => text.replaceAll("\u00a0", " ");
const replay = (tab, given = {}) => tab.evaluate((given) => window.ratelimit.replay(given), { strategies: PINS, ...given });
const head = async (tab) => Number(await tab.locator("#head").inputValue());
const bigs = async (tab) => (await tab.locator(".big").allInnerTexts()).map(Number);
const scrub = (tab, seconds) =>
    tab.locator("#head").evaluate((head, at) => {
        head.value = at;
        head.dispatchEvent(new Event("input", { bubbles: true }));
    }, seconds * 1e6);

/** How many pixels of a lane's dots have the colours of what got through and of refusals; `from` is the part of its width
 * at which counting begins. */
const inked = (tab, place, from = 0) =>
    lane(tab, place).locator(".past").evaluate((canvas, from) => {
        const colour = (name) => {
            const probe = document.body.appendChild(Object.assign(document.createElement("i"), { style: `color: var(--${name})` }));
            const parts = getComputedStyle(probe).color.match(/\d+/g).map(Number);
            probe.remove();
            return parts;
        };
        const wanted = [colour("through"), colour("mark")];
        const top = 26 * devicePixelRatio;
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
        copy.drawImage(canvas, 0, 0);
        const { data } = copy.getImageData(Math.round(canvas.width * from), top, Math.round(canvas.width * (1 - from)), canvas.height - 76 * devicePixelRatio - top);
        const counts = [0, 0];
        for (let i = 0; i < data.length; i += 4) {
            wanted.forEach((parts, kind) => { if (data[i + 3] > 200 && parts.every((part, j) => Math.abs(part - data[i + j]) < 30)) counts[kind] += 1; });
        }
        return { through: counts[0], refused: counts[1] };
    }, from);

test("it opens on the stampede: a fixed window lets twice the limit through, the log lets the limit", () =>
    visit({}, async (tab) => {
        assert.equal(plain(await tab.locator("#lesson").innerText()), "FIXEDWINDOW ALIGNED lets 200 requests through within 10 s, and SLIDINGLOG lets 100 through. The limit is 100.");
        assert.deepEqual(await bigs(tab), [200, 100]);
        assert.match(await lane(tab, 0).innerText(), /▲ 2\.0× the limit/);
        assert.equal(await lane(tab, 1).locator(".times").isVisible(), false);
        assert.match(plain(await lane(tab, 0).locator(".past").getAttribute("aria-label")), /FIXEDWINDOW ALIGNED at 10\.1 s: 200 through in the last 10 s; remaining: 0 of 100/);
        const [left, right] = [await inked(tab, 0), await inked(tab, 1)];
        const times = left.through / right.through;
        assert.ok(times > 1.7 && times < 2.3, `${times} times as many dots`);
        assert.ok(right.refused > 1.5 * left.refused, `${right.refused} and ${left.refused}`);
    }));

test("requests are there when they have come, and those that wait are there ahead of their time", () =>
    visit({ view: "shape=bursts&pins=token-bucket,leaky-bucket" }, async (tab) => {
        await scrub(tab, 0);
        assert.deepEqual(await inked(tab, 0), { through: 0, refused: 0 });
        // Half a second after the burst, all who came have been answered, and the queue lets one through each 100 ms.
        await scrub(tab, 5.75);
        const [bucket, queue] = [await inked(tab, 0), await inked(tab, 1)];
        assert.ok(bucket.refused > 0 && queue.refused > 0);
        const { lanes: [, { replay: { from } }], traffic: { asked } } = await replay(tab, { shape: "bursts", strategies: ["token-bucket", "leaky-bucket"] });
        const waiting = from.filter((from, i) => from > 5.75e6 && asked[i] <= 5.75e6).length;
        assert.ok(waiting > 30, `${waiting} wait`);
        // In sight are 13 s, in bins of one.
        assert.deepEqual(await inked(tab, 0, 6.1 / 13), { through: 0, refused: 0 });
        assert.ok((await inked(tab, 1, 6.1 / 13)).through > 100, "those that wait are not to be seen");
    }));

test("numbers follow the play head: the most so far, the last period's, what remains", () =>
    visit({}, async (tab) => {
        const { traffic: { asked }, lanes } = await replay(tab);
        for (const at of [0, 9.5, 10.05, 25, 60]) {
            await scrub(tab, at);
            for (const [place, { replay: { from, remaining } }] of lanes.entries()) {
                const past = from.filter((from) => from >= 0 && from <= at * 1e6).sort((a, b) => a - b);
                const most = Math.max(0, ...past.map((end, i) => past.slice(0, i + 1).filter((one) => one > end - 10e6).length));
                assert.equal(Number(await lane(tab, place).locator(".big").innerText()), most, `the most until ${at} s`);
                const within = past.filter((from) => from > at * 1e6 - 10e6).length;
                const left = remaining[asked.findLastIndex((asked) => asked <= at * 1e6)] ?? 100;
                const says = plain(await lane(tab, place).locator(".past").getAttribute("aria-label"));
                assert.ok(says.endsWith(`: ${count(within)} through in the last 10 s; remaining: ${left} of 100`), `${says}, but ${within}, ${left}`);
            }
        }
        assert.equal(await tab.locator("#head").getAttribute("aria-valuetext"), "60.0 s");
    }));

test("time plays, pauses and starts again at the end; in steps for who asked for less motion", () =>
    visit({}, async (tab) => {
        const button = tab.locator("#play");
        const [began, ended, step] = [9.89e6, 10.09e6, 0.03e6];
        assert.equal(await head(tab), ended);
        await button.click();
        assert.equal(await button.innerText(), "Pause");
        // What the scene is about plays once more.
        await tab.waitForFunction(([began, ended]) => { const at = Number(document.getElementById("head").value); return at > began && at < ended; }, [began, ended]);
        await button.click();
        const paused = await head(tab);
        assert.ok(paused >= ended || Math.abs((paused / step) - Math.round(paused / step)) < 0.5, "time does not go on in steps");
        await tab.waitForTimeout(500);
        assert.equal(await head(tab), paused);
        await scrub(tab, 60);
        await button.click();
        await tab.waitForFunction(() => Number(document.getElementById("head").value) < 30e6);
        // Whoever takes the play head stops it.
        await scrub(tab, 20);
        assert.equal(await button.innerText(), "Play");
    }));

test("Space sends a request also after a click on Play, and Enter plays", () =>
    visit({}, async (tab) => {
        const button = tab.locator("#play");
        await button.click();
        await button.click();
        assert.equal(await button.innerText(), "Play");
        await tab.keyboard.press("Space");
        await tab.waitForFunction(() => document.getElementById("sent").textContent);
        assert.equal(await button.innerText(), "Play");
        await tab.keyboard.press("Enter");
        assert.equal(await button.innerText(), "Pause");
    }));

test("each scene has its own pair, and says the sentence that its figures make; a badge agrees with its number", () =>
    visit({ view: "shape=edge" }, async (tab) => {
        const scenes = await tab.$$eval("#scenes input", (all) => all.map(({ value }) => value));
        assert.equal(scenes.length, 6);
        for (const shape of scenes) {
            await tab.locator(`#scenes label:has([value=${shape}])`).click();
            await tab.waitForFunction((shape) => location.hash === `#shape=${shape}` && document.getElementById("stage").ariaBusy === "false", shape);
            const pins = await tab.$$eval(".lane", (all) => all.map(({ dataset }) => dataset.lane));
            const { lanes, lesson } = await replay(tab, { shape, strategies: pins });
            assert.equal(plain(await tab.locator("#lesson").innerText()), lesson);
            await scrub(tab, 600);
            for (const [place, { replay: { headline, bound } }] of lanes.entries()) {
                const most = headline.at(-1)[1], shown = lane(tab, place).locator(".big");
                assert.equal(await shown.innerText(), count(most));
                assert.ok(lesson.includes(count(most)), lesson);
                const times = bound ? most / bound : 0, badge = await lane(tab, place).locator(".times").innerText();
                assert.equal(badge.includes(`${times.toFixed(1)}×`), times >= 1.05, `${badge} for ${most} of ${bound}`);
                assert.equal((await lane(tab, place).getAttribute("data-over")) !== null, times >= 1.05);
            }
        }
    }));

test("requests are on their way to the limiter, in front of it and behind it", () =>
    visit({ view: "shape=slow" }, async (tab) => {
        const inked = (from, to) => lane(tab, 1).locator(".flow").evaluate((canvas, [from, to]) => {
            const [left, top] = [Math.round(canvas.width * from), Math.round(16 * devicePixelRatio)];
            const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
            copy.drawImage(canvas, 0, 0);
            const { data } = copy.getImageData(left, top, Math.round(canvas.width * (to - from)), canvas.height - top);
            return data.filter((part, i) => i % 4 === 3 && part > 100).length;
        }, [from, to]);
        await scrub(tab, 50);
        assert.ok((await inked(0, 0.4)) > 200, "nothing comes");
        assert.ok((await inked(0.45, 1)) > 200, "nothing is at work");
        await scrub(tab, 0);
        assert.ok((await inked(0.44, 0.6)) < 60, "something is through before it came");
    }));

test("a scene begins by itself, unless less motion was asked for", () =>
    visit({}, async (tab) => {
        assert.equal(await head(tab), 10.09e6);
        await tab.emulateMedia({ reducedMotion: "no-preference" });
        // It is over after three seconds, so the page notes where each playing began and ended.
        await tab.addInitScript(() => {
            window.played = [];
            const note = () => {
                const [play, head] = [document.getElementById("play"), document.getElementById("head")];
                window.played.push([play.dataset.playing, Number(head.value)]);
            };
            new MutationObserver(note).observe(document, { subtree: true, attributeFilter: ["data-playing"] });
        });
        await tab.reload();
        await tab.waitForFunction(() => window.played.length === 2);
        const [began, ended] = await tab.evaluate(() => window.played);
        assert.ok(began[0] === "true" && began[1] < 10.09e6, `${began}`);
        assert.deepEqual(ended, ["false", 10.09e6]);
    }));

test("a click, the button and the space key send a request, and both replies are told in words", () =>
    visit({ view: "pins=fixed-window-aligned,leaky-bucket" }, async (tab) => {
        const sent = [];
        const ways = [
            [4, () => lane(tab, 0).locator(".past").click()],
            [10.05, () => tab.locator("#send").click()],
            [12, async () => { await tab.locator("#head").focus(); await tab.keyboard.press("Space"); }],
            [12, async () => { await tab.evaluate(() => document.activeElement.blur()); await tab.keyboard.press("Space"); }],
        ];
        for (const [at, send] of ways) {
            await scrub(tab, at);
            sent.push((await head(tab)));
            await send();
            const { traffic, lanes } = await replay(tab, { strategies: ["fixed-window-aligned", "leaky-bucket"], sent });
            const place = traffic.sent.findLast((place) => traffic.asked[place] === sent.at(-1));
            const said = lanes.map(({ replay }) => expected(replay, place, sent.at(-1)));
            const told = `At ${(sent.at(-1) / 1e6).toFixed(1)} s, FIXEDWINDOW ALIGNED: ${said[0]}; LEAKYBUCKET: ${said[1]}.`;
            await tab.waitForFunction((told) => document.getElementById("sent").textContent.replaceAll("\u00a0", " ") === told, told);
            assert.deepEqual((await tab.locator(".reply").allInnerTexts()).map(plain), said.map((words) => `Yours: ${words}`));
        }
        const words = plain((await tab.locator(".reply").allInnerTexts()).join());
        assert.match(words, /refused, retry in [\d.]+ s, 0 left|refused, retry in [\d.]+ m?s/);
        assert.match(words, /admitted, waits [\d.]+ s, \d+ left/);
        await tab.locator("#clear").click();
        await tab.waitForFunction(() => !document.getElementById("sent").textContent);
        assert.equal(await tab.locator(".reply:visible").count(), 0);
        assert.equal(await tab.locator("#clear").isVisible(), false);
    }));

/** The words for a reply, reckoned here. */
function expected({ from, retry, remaining }, place, at) {
    const atMost = (ms) => (ms < 1000 ? `${ms} ms` : `${Math.ceil(ms / 100) / 10} s`);
    if (from[place] < 0) return `refused, retry in ${atMost(retry[place])}`;
    const wait = (from[place] - at) / 1000;
    return `admitted${wait ? `, waits ${atMost(wait)}` : ""}, ${remaining[place]} left`;
}

test("a request of one's own uses up the limit", () =>
    visit({}, async (tab) => {
        await scrub(tab, 4);
        const remaining = async () => Number((await lane(tab, 1).locator(".past").getAttribute("aria-label")).match(/remaining: (\d+)/)[1]);
        const before = await remaining();
        for (let i = 1; i <= 3; i += 1) {
            await tab.locator("#send").click();
            await tab.waitForFunction((left) => document.querySelectorAll(".past")[1].ariaLabel.includes(`remaining: ${left} of`), before - i);
        }
        // Another traffic begins without it.
        await tab.getByLabel("Bursts").check();
        await tab.waitForFunction(() => !document.getElementById("sent").textContent);
    }));

test("two strategies are pinned side by side, by a card or by a lane; the address has them, and the way back leads there", () =>
    visit({}, async (tab) => {
        const pinned = async (...ids) => {
            await tab.waitForFunction((ids) => [...document.querySelectorAll(".lane")].map((lane) => lane.dataset.lane).join() === ids, ids.join());
            assert.deepEqual(await tab.$$eval(".pin[aria-pressed=true]", (all) => all.map((pin) => pin.closest("[data-strategy]").dataset.strategy).sort()), ids.sort());
        };
        await pinned(...PINS);
        const [left, right] = [await lane(tab, 0).boundingBox(), await lane(tab, 1).boundingBox()];
        assert.ok(right.x > left.x + left.width && right.y === left.y, "they do not stand side by side");
        await card(tab, "gcra").getByRole("button", { name: "Pin GCRA" }).click();
        await pinned("sliding-log", "gcra");
        assert.equal(await fragment(tab), "#shape=edge&pins=sliding-log,gcra");
        // One that is not among the few gets a card, too.
        await tab.getByLabel("Left strategy").selectOption("leaky-bucket");
        await card(tab, "leaky-bucket").waitFor();
        await pinned("leaky-bucket", "gcra");
        assert.match(await lane(tab, 0).locator("code").innerText(), /^RL\.LEAKYBUCKET /);
        await tab.goBack();
        await pinned("sliding-log", "gcra");
        await tab.goBack();
        await pinned(...PINS);
    }));
