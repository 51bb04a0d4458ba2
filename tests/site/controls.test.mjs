// The comparing page's controls and its address: nothing that is typed is lost, and the way back leads there.
import assert from "node:assert/strict";
import { test } from "node:test";

import { card, charts, computed, fragment, shown, told, trials, visit } from "./page.mjs";

/** Until the address says this and nothing else, in any order. */
const addressed = (tab, expected) =>
    tab.waitForFunction((expected) => {
        const words = (text) => text.replace("#", "").split("&").sort().join();
        return words(location.hash) === words(expected);
    }, expected);

test("by keyboard alone a shape and a number are changed; the view is in the address, and the way back leads there", () =>
    visit({}, async (tab) => {
        const first = async (given) => (await trials(tab, given))[0];
        const reach = async (id) => {
            for (let stops = 0; stops < 60; stops += 1) {
                await tab.keyboard.press("Tab");
                if (await tab.evaluate((id) => [document.activeElement.id, document.activeElement.name].includes(id), id)) return;
            }
            assert.fail(`Tab does not reach ${id}`);
        };
        const drawn = await charts(tab);
        await reach("shape");
        await tab.keyboard.press("ArrowUp");
        const bursts = await first({ shape: "bursts" });
        await shown(tab, [bursts.id, told(bursts)]);
        assert.equal(await fragment(tab), "#shape=bursts");
        await reach("limit");
        await tab.keyboard.press("ControlOrMeta+A");
        await tab.keyboard.type("50");
        const fifty = await first({ shape: "bursts", limit: 50 });
        await shown(tab, [fifty.id, told(fifty)]);
        // The address follows a number later than the figures may.
        await addressed(tab, "shape=bursts&limit=50");
        await tab.keyboard.press("Tab");
        await tab.keyboard.press("ArrowRight");
        await tab.keyboard.press("ArrowRight");
        const more = await first({ shape: "bursts", limit: 52 });
        await shown(tab, [more.id, told(more)]);
        assert.equal(await tab.locator("#limit").inputValue(), "52");
        const now = await charts(tab);
        now.forEach((chart, i) => assert.notEqual(chart, drawn[i], `chart ${i} is the old one`));

        await addressed(tab, "shape=bursts&limit=52");
        await tab.reload();
        await computed(tab);
        await shown(tab, [more.id, told(more)]);
        assert.equal(await tab.locator("#limit").inputValue(), "52");
        assert.ok(await tab.getByLabel("Bursts").isChecked());
        assert.match(await tab.locator("#said").innerText(), /Bursts, 15 a second on average. Allowed: 52 per 10/);
        // All that was done to one number is one step back.
        await tab.goBack();
        await shown(tab, [bursts.id, told(bursts)]);
        assert.equal(await tab.locator("#limit").inputValue(), "100");
        await tab.goBack();
        await shown(tab, ["token-bucket", told(await first({}))]);
        assert.ok(await tab.getByLabel("A burst at the edge").isChecked());
    }));

test("what is nonsense in the address is passed over, and what is too much is brought back", () =>
    visit({ view: "shape=zigzag&limit=abc&rate=-5&burst=1e9&workers=&period=7000&shared=perhaps&family=,x&card=none&%E0%A4%A=%" }, async (tab) => {
        const values = await tab.$$eval("[type=number]", (all) => Object.fromEntries(all.map(({ name, value }) => [name, value])));
        assert.deepEqual(values, { rate: "1", limit: "100", burst: "600", workers: "10", service: "500" });
        assert.ok(await tab.getByLabel("A burst at the edge").isChecked());
        assert.ok(await tab.getByRole("radio", { name: "10 s" }).isChecked());
        assert.equal(await tab.locator("#burst-wrong").innerText(), "1e9 is beyond the range 1 to 600. Shown: 600.");
        assert.equal(await tab.locator("#rate-wrong").innerText(), "-5 is beyond the range 1 to 60. Shown: 1.");
        assert.equal(await tab.locator(".wrong:visible").count(), 2);
        await tab.getByRole("button", { name: "Reset" }).click();
        await tab.waitForFunction(() => location.hash === "#shape=edge");
        assert.equal(await tab.locator("#rate").inputValue(), "15");
        assert.equal(await tab.locator(".wrong:visible").count(), 0);
    }));

test("a number beyond the range says so beside the field, and the last chart stays", () =>
    visit({}, async (tab) => {
        const fault = tab.locator("#limit-wrong"), field = tab.locator("#limit");
        const before = await tab.locator("#lesson").innerText();
        for (const [text, says] of [
            ["6000", "6000 is beyond the range 1 to 600. Shown: 100."],
            ["0", "0 is beyond the range 1 to 600. Shown: 100."],
            ["2.5", "A whole number from 1 to 600. Shown: 100."],
        ]) {
            await field.fill(text);
            assert.equal(await fault.innerText(), says);
            const [{ y: top, height }, { y }] = [await field.boundingBox(), await fault.boundingBox()];
            assert.ok(y >= top && y < top + height + 60, "it is not beside the field");
            await field.blur();
            await tab.waitForTimeout(300);
            assert.equal(await field.inputValue(), text);
            assert.equal(await field.getAttribute("aria-invalid"), "");
            assert.equal(await tab.locator("[data-of=limit]").inputValue(), "100");
        }
        assert.equal(await fragment(tab), "");
        assert.equal(await tab.locator("#lesson").innerText(), before);
        await field.fill("50");
        await addressed(tab, "shape=edge&limit=50");
        assert.equal(await fault.isVisible(), false);
        assert.equal(await field.getAttribute("aria-invalid"), null);
    }));

test("a few strategies are shown, and the others after a click; the table can be sorted", () =>
    visit({ view: "shape=edge" }, async (tab) => {
        const all = await trials(tab);
        const names = () => tab.locator("#overview tbody th[scope=row]").allInnerTexts();
        assert.deepEqual(await names(), ["TOKENBUCKET", "GCRA", "FIXEDWINDOW ALIGNED", "SLIDINGWINDOW", "SLIDINGLOG"]);
        assert.equal(await tab.locator(".card").count(), 5);
        const more = tab.locator("#others");
        assert.equal(await more.innerText(), `${all.length - 5} more strategies`);
        await more.click();
        await tab.waitForFunction((count) => document.querySelectorAll(".card").length === count, all.length);
        assert.equal(await fragment(tab), "#shape=edge&all=true");
        assert.equal(await more.getAttribute("aria-expanded"), "true");
        const column = tab.getByRole("columnheader", { name: /Most in any/ });
        await column.getByRole("button").click();
        assert.equal(await column.getAttribute("aria-sort"), "descending");
        const byPeak = [...all].sort((a, b) => a.figures.peak - b.figures.peak);
        assert.equal((await names())[0], byPeak.at(-1).name);
        await column.getByRole("button").click();
        assert.equal(await column.getAttribute("aria-sort"), "ascending");
        assert.equal((await names())[0], byPeak[0].name);
        await tab.getByRole("button", { name: "Fewer strategies" }).click();
        await tab.waitForFunction(() => location.hash === "#shape=edge");
        assert.equal(await tab.locator(".card").count(), 5);
    }));

test("the copied command is the one shown, and has the key that all share", () =>
    visit({ view: "shape=abuser&pins=gcra,sliding-log" }, async (tab) => {
        await tab.context().grantPermissions(["clipboard-read", "clipboard-write"]);
        for (const [label, key] of [["One for all", "everybody"], ["One for each user", "user:1"]]) {
            await tab.getByLabel(label).check();
            for (const [where, command] of [[card(tab, "gcra"), `RL.GCRA ${key} 49 100 10s`], [tab.locator(".lane").last(), `RL.SLIDINGLOG ${key} 100 10s`]]) {
                await where.locator("code", { hasText: command }).waitFor();
                await where.locator(".command button").click();
                await tab.waitForFunction((command) => document.getElementById("copied").textContent === `Copied: ${command}`, command);
                assert.equal(await tab.evaluate(() => navigator.clipboard.readText()), command);
            }
        }
    }));

test("nothing is lost of what changes in quick succession", () =>
    visit({}, async (tab) => {
        await tab.locator("#rate").fill("30");
        await tab.locator("#limit").fill("200");
        await addressed(tab, "shape=edge&rate=30&limit=200");
        await tab.locator("#burst").fill("70");
        await tab.getByLabel("Bursts").check();
        await addressed(tab, "shape=bursts&rate=30&limit=200&burst=70");

        // A slider that is being drawn says input, and change only in the end.
        const draw = (name, value) => tab.evaluate(([name, value]) => {
            const slider = document.querySelector(`[data-of=${name}]`);
            slider.value = value;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
        }, [name, value]);
        await draw("workers", 20);
        await draw("service", 900);
        await tab.getByLabel("A burst at the edge").check();
        await addressed(tab, "shape=edge&rate=30&limit=200&burst=70&workers=20&service=900");
        await draw("workers", 33);
        await draw("rate", 44);
        await addressed(tab, "shape=edge&rate=44&limit=200&burst=70&workers=33&service=900");
        const [first] = await trials(tab, { shape: "edge", rate: 44, limit: 200, burst: 70, workers: 33, service: 900 });
        await shown(tab, [first.id, told(first)]);
        // But what is reset is reset.
        await draw("workers", 50);
        await tab.getByRole("button", { name: "Reset" }).click();
        await tab.waitForTimeout(300);
        await addressed(tab, "shape=edge");
        assert.equal(await tab.locator("#workers").inputValue(), "10");
    }));

test("who types fast is followed, also while a field is empty", () =>
    visit({}, async (tab) => {
        const next = async () => { for (let i = 0; i < 2; i += 1) await tab.keyboard.press("Tab"); };
        await tab.locator("#rate").focus();
        await tab.keyboard.press("ControlOrMeta+A");
        await tab.keyboard.type("40");
        await next();
        await tab.keyboard.type("300");
        await next();
        await tab.keyboard.type("80");
        await next();
        await addressed(tab, "shape=edge&rate=40&limit=300&burst=80");
        await tab.locator("[data-of=rate]").press("ArrowRight");
        await tab.keyboard.press("Tab");
        await tab.keyboard.press("Backspace");
        await addressed(tab, "shape=edge&rate=41&limit=300&burst=80");
        await tab.waitForTimeout(300);
        assert.equal(await tab.locator("#limit").inputValue(), "");
        await tab.keyboard.type("250");
        await addressed(tab, "shape=edge&rate=41&limit=250&burst=80");
    }));

test("who came back does not lose the view by changing the same number again", () =>
    visit({}, async (tab) => {
        await tab.getByLabel("Bursts").check();
        await tab.locator("#limit").fill("50");
        await addressed(tab, "shape=bursts&limit=50");
        // The page hears of another address a task after the address is there.
        const back = async () => {
            await tab.goBack();
            await tab.waitForFunction(() => document.getElementById("limit").value === "100");
            await addressed(tab, "shape=bursts");
        };
        await back();
        await tab.locator("#limit").fill("70");
        await addressed(tab, "shape=bursts&limit=70");
        await back();
    }));
