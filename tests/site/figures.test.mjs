// What the comparing page tells: each figure where it stands, in charts, tables and words.
import assert from "node:assert/strict";
import { test } from "node:test";

import { card, count, fragment, ORIGINS, shown, told, trials, visit, words } from "./page.mjs";

/** Heights of the steps of an area, a step for each of so many slots. */
function heights(svg, kind, slots = 120) {
    const [, path] = svg.match(new RegExp(`<path class="${kind}" d="([^"]+)"`));
    const [, left, bottom] = path.match(/^M([\d.]+) ([\d.]+)/).map(Number);
    const steps = [...path.matchAll(/V([\d.]+)H([\d.]+)/g)].map(([, y, x]) => [Number(y), Number(x)]);
    const width = (steps.at(-1)[1] - left) / slots;
    return Array.from({ length: slots }, (_, i) => bottom - steps.find(([, x]) => x > left + (i + 0.5) * width)[0]);
}

for (const from of Object.keys(ORIGINS)) {
    test(`every strategy has a chart, and the figures of its trial, from ${from}`, () =>
        visit({ from, view: "shape=steady&all=true" }, async (tab) => {
            const all = await trials(tab, { shape: "steady" });
            assert.ok(all.length);
            assert.equal(await tab.locator(".card").count(), all.length);
            assert.equal(await tab.locator("#overview tbody tr:has(td)").count(), all.length);
            for (const trial of all) {
                const { id, name, command, tradeOff, figures } = trial;
                const text = (await card(tab, id).innerText()).replaceAll("\u00a0", " ");
                for (const part of [name, command, tradeOff, told(trial)]) assert.ok(text.includes(part), `${part} in: ${text}`);
                assert.ok((await card(tab, id).getByRole("img").getAttribute("aria-label")).replaceAll("\u00a0", " ").includes(told(trial)));
                const box = await card(tab, id).locator("path.through").first().boundingBox();
                assert.ok(box.height > 20 && box.width > 200, `${id}: ${JSON.stringify(box)}`);
                const row = tab.locator("#overview tr", { has: tab.getByRole("link", { name, exact: true }) });
                const cells = (await row.locator("td").allInnerTexts()).map((cell) => cell.replaceAll("\u00a0", " "));
                assert.ok(cells[0].startsWith(count(figures.all.admitted)), cells[0]);
                assert.ok(cells[1].startsWith(count(figures.peak)), cells[1]);
                assert.equal(cells[2] === "none", figures.wait === 0, cells[2]);
                assert.equal(cells[3], count(figures.atWork));
            }
            // Alone there is no documentation beside it.
            assert.equal(await tab.locator("a[href*=html]:visible").count(), 0);
        }));
}

test("a chart's steps are as high as what was counted", () =>
    visit({}, async (tab) => {
        for (const given of [{ shape: "bursts" }, { shape: "abuser", shared: true }]) {
            for (const { id, series, svg } of await trials(tab, { ...given, width: 1000 })) {
                const most = series.offered.indexOf(Math.max(...series.offered));
                const one = heights(svg, "offered")[most] / series.offered[most];
                for (const kind of ["offered", "through", ...(given.shape === "abuser" ? ["abuser"] : [])]) {
                    const drawn = heights(svg, kind);
                    const off = drawn.findIndex((height, i) => Math.abs(height - series[kind][i] * one) > 0.2);
                    assert.equal(off, -1, `${id}, ${kind}, slot ${off}: ${drawn[off]} for ${series[kind][off]}`);
                }
            }
        }
    }));

test("known consequences of the strategies", () =>
    visit({ view: "shape=edge&all=true" }, async (tab) => {
        const trial = async (given, id) => (await trials(tab, given)).find((trial) => trial.id === id);
        const peak = async (shape, id) => (await trial({ shape }, id)).figures.peak;
        // Twice the limit of 100 passes around an edge that everybody knows; the log and the gate keep their promise.
        assert.equal(await peak("edge", "fixed-window-aligned"), 200);
        for (const shape of ["steady", "bursts", "edge", "slow", "abuser"]) assert.ok((await peak(shape, "sliding-log")) <= 100, shape);
        assert.equal(await peak("edge", "sliding-log"), 100);
        // A burst of 50 and the refill of 100 is the most that a bucket lets through.
        assert.ok((await peak("steady", "token-bucket")) <= 150);
        // One per 100 ms.
        assert.ok((await peak("steady", "uniform")) <= 100);
        for (const shape of ["steady", "slow"]) assert.equal((await trial({ shape }, "concurrent")).figures.atWork, 10);
        // A queue of 50 at 10 per second is 5 s long.
        const { wait } = (await trial({ shape: "bursts" }, "leaky-bucket")).figures;
        assert.ok(wait > 4000 && wait <= 5000, `${wait}`);
        // With one key for all, the abuser takes what is the others'.
        for (const id of ["token-bucket", "sliding-log", "fixed-window"]) {
            const [each, shared] = [await trial({ shape: "abuser" }, id), await trial({ shape: "abuser", shared: true }, id)];
            assert.equal(each.figures.normal.admitted, each.figures.normal.offered, id);
            assert.ok(shared.figures.normal.admitted < 0.8 * each.figures.normal.admitted, id);
        }
        // And the page says so.
        assert.match(await words(tab, "fixed-window-aligned"), /at most 200 within any 10 s, 2.0 times the limit/);
        assert.match(await words(tab, "sliding-log"), /at most 100 within any 10 s\./);
        const marked = await tab.locator("#overview tr", { hasText: "▲" }).locator("th").allInnerTexts();
        assert.deepEqual(marked, ["FIXEDWINDOW ALIGNED"]);
    }));

test("with a key each and with one for all, the page tells what normal users get", () =>
    visit({ view: "shape=abuser&all=true" }, async (tab) => {
        const [each, one] = [await trials(tab, { shape: "abuser" }), await trials(tab, { shape: "abuser", shared: true })];
        for (const trial of each) assert.ok((await words(tab, trial.id)).includes(told(trial, { whose: " of the same user" })));
        const normal = async () => (await tab.locator("#overview tbody td:nth-child(6)").allInnerTexts()).map(Number.parseFloat);
        const percent = ({ figures: { normal } }) => Math.round((normal.admitted / normal.offered) * 100);
        assert.deepEqual(await normal(), each.map(percent));
        await tab.getByLabel("One for all").check();
        await shown(tab, [one[0].id, told(one[0])]);
        assert.deepEqual(await normal(), one.map(percent));
        assert.equal(await fragment(tab), "#shape=abuser&shared=true&all=true");
    }));

test("no wait is rounded down; all and none are only what they are", () =>
    visit({ view: "all=true" }, async (tab) => {
        // Among these are 931 of 933 and 1 of 933, and waits of 2,074 ms and of 489,995 ms.
        for (const given of [{ shape: "steady", limit: 160 }, { shape: "steady", limit: 1 }]) {
            const all = await trials(tab, given);
            await tab.evaluate(({ limit }) => { location.hash = `shape=steady&all=true&limit=${limit}`; }, given);
            await shown(tab, [all[0].id, told(all[0])]);
            for (const { name, figures: { all: { admitted, offered }, wait } } of all) {
                const row = tab.locator("#overview tr", { has: tab.getByRole("link", { name, exact: true }) });
                const share = Number.parseInt(await row.locator("td .of").innerText());
                assert.equal(share === 100, admitted === offered, `${name}: ${share} %`);
                assert.equal(share === 0, admitted === 0, `${name}: ${share} %`);
                const cell = await row.locator("td").nth(2).innerText();
                const longest = Number.parseFloat(cell) * (cell.endsWith("ms") ? 1 : 1000) || 0;
                assert.ok(longest >= wait && longest < wait + 100, `${name}: ${cell} for ${wait} ms`);
            }
        }
    }));

test("the data of a chart is there as a table, too", () =>
    visit({ view: "shape=slow" }, async (tab) => {
        const { series, id } = (await trials(tab, { shape: "slow" })).find(({ id }) => id === "gcra");
        await card(tab, id).locator("summary").press("Enter");
        const column = async (i) => (await card(tab, id).locator(`details td:nth-child(${i})`).allTextContents()).map(Number);
        const sum = (numbers) => numbers.reduce((a, b) => a + b);
        await card(tab, id).locator("details td").first().waitFor();
        assert.equal((await column(2)).length, 20);
        assert.equal(sum(await column(2)), sum(series.offered));
        assert.equal(sum(await column(3)), sum(series.through));
        assert.equal(Math.max(...(await column(5))), Math.max(...series.within));
        assert.equal(Math.max(...(await column(6))), Math.max(...series.atWork));
        const names = await tab.locator("summary").allTextContents();
        assert.equal(new Set(names).size, names.length);
    }));

test("a card says how long a refusal lasts: until something is released, or for ever", () => {
    const never = () => {
        const parse = JSON.parse;
        JSON.parse = (text) => {
            const told = parse(text);
            for (const trial of told?.trials ?? []) if (trial.id === "uniform") trial.figures.retry = null;
            return told;
        };
        delete window.Worker;
    };
    return visit({ view: "shape=slow&all=true", first: never }, async (tab) => {
        for (const id of ["concurrent", "multi"]) assert.match(await words(tab, id), /retry after at most [\d.]+ s, sooner if one is released\./);
        assert.match(await words(tab, "gcra"), /retry after at most [\d.]+ m?s\./);
        assert.match(await words(tab, "uniform"), /Some are refused for ever\./);
    });
});
