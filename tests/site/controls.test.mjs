// The comparing page's controls and its address: nothing that is typed is lost, and the way back leads there.
import assert from "node:assert/strict";
import { test } from "node:test";

import { charts, computed, fragment, shown, told, trials, visit } from "./page.mjs";

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
        await tab.keyboard.press("ArrowDown");
        const bursts = await first({ shape: "bursts" });
        await shown(tab, [bursts.id, told(bursts)]);
        assert.equal(await fragment(tab), "#shape=bursts");
        await reach("limit");
        await tab.keyboard.press("ControlOrMeta+A");
        await tab.keyboard.type("50");
        const fifty = await first({ shape: "bursts", limit: 50 });
        await shown(tab, [fifty.id, told(fifty)]);
        assert.equal(await fragment(tab), "#shape=bursts&limit=50");
        await tab.keyboard.press("Tab");
        await tab.keyboard.press("ArrowRight");
        await tab.keyboard.press("ArrowRight");
        const more = await first({ shape: "bursts", limit: 52 });
        await shown(tab, [more.id, told(more)]);
        assert.equal(await tab.locator("#limit").inputValue(), "52");
        const now = await charts(tab);
        now.forEach((chart, i) => assert.notEqual(chart, drawn[i], `chart ${i} is the old one`));

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
        assert.ok(await tab.getByLabel("Steady").isChecked());
    }));

test("what is nonsense in the address is passed over, and what is too much is brought back", () =>
    visit({ view: "shape=zigzag&limit=abc&rate=-5&burst=1e9&workers=&period=7000&shared=perhaps&family=,x&card=none&%E0%A4%A=%" }, async (tab) => {
        const values = await tab.$$eval("[type=number]", (all) => Object.fromEntries(all.map(({ name, value }) => [name, value])));
        assert.deepEqual(values, { rate: "1", limit: "100", burst: "600", workers: "10", service: "500" });
        assert.ok(await tab.getByLabel("Steady").isChecked());
        assert.ok(await tab.getByRole("radio", { name: "10 s" }).isChecked());
        assert.equal(await tab.locator(".card:visible").count(), (await trials(tab)).length);
        await tab.getByRole("button", { name: "Reset" }).click();
        await tab.waitForFunction(() => location.hash === "#shape=steady");
        assert.equal(await tab.locator("#rate").inputValue(), "15");
    }));

test("a number that cannot be is not taken, and leaving the field brings the old one back", () =>
    visit({}, async (tab) => {
        await tab.locator("#limit").fill("6000");
        await tab.waitForTimeout(300);
        assert.equal(await fragment(tab), "");
        await tab.locator("#limit").blur();
        assert.equal(await tab.locator("#limit").inputValue(), "100");
        await tab.locator("#limit").press("Enter");
        assert.equal(await tab.locator("#limit").inputValue(), "100");
    }));

test("families can be left out, and the table sorted", () =>
    visit({ view: "shape=edge" }, async (tab) => {
        for (const family of ["Buckets", "Spacing", "Backend"]) await tab.getByRole("checkbox", { name: family }).uncheck();
        await tab.waitForFunction(() => location.hash === "#shape=edge&family=Windows");
        const all = await trials(tab);
        assert.equal(await tab.locator(".card:visible").count(), all.filter(({ family }) => family === "Windows").length);
        const names = () => tab.locator("#overview tbody th[scope=row]").allInnerTexts();
        const column = tab.getByRole("columnheader", { name: /Most in any/ });
        await column.getByRole("button").click();
        assert.equal(await column.getAttribute("aria-sort"), "descending");
        assert.equal((await names())[0], "FIXEDWINDOW ALIGNED");
        await column.getByRole("button").click();
        assert.equal(await column.getAttribute("aria-sort"), "ascending");
        assert.equal((await names())[0], "SLIDINGLOG GAP");
        // Without any family there would be nothing to see.
        await tab.getByRole("checkbox", { name: "Windows" }).click();
        await tab.waitForFunction(() => location.hash === "#shape=edge");
        assert.equal(await tab.locator(".card:visible").count(), all.length);
    }));

test("nothing is lost of what changes in quick succession", () =>
    visit({}, async (tab) => {
        await tab.locator("#rate").fill("30");
        await tab.locator("#limit").fill("200");
        await addressed(tab, "shape=steady&rate=30&limit=200");
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
        await tab.getByLabel("Stampede").check();
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
        await addressed(tab, "shape=steady");
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
        await addressed(tab, "shape=steady&rate=40&limit=300&burst=80");
        await tab.locator("[data-of=rate]").press("ArrowRight");
        await tab.keyboard.press("Tab");
        await tab.keyboard.press("Backspace");
        await addressed(tab, "shape=steady&rate=41&limit=300&burst=80");
        await tab.waitForTimeout(300);
        assert.equal(await tab.locator("#limit").inputValue(), "");
        await tab.keyboard.type("250");
        await addressed(tab, "shape=steady&rate=41&limit=250&burst=80");
    }));

test("who came back does not lose the view by changing the same number again", () =>
    visit({}, async (tab) => {
        await tab.getByLabel("Bursts").check();
        await tab.locator("#limit").fill("50");
        await addressed(tab, "shape=bursts&limit=50");
        await tab.goBack();
        await addressed(tab, "shape=bursts");
        await tab.locator("#limit").fill("70");
        await addressed(tab, "shape=bursts&limit=70");
        await tab.goBack();
        await addressed(tab, "shape=bursts");
        assert.equal(await tab.locator("#limit").inputValue(), "100");
    }));
