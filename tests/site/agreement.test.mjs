// The comparing page's arithmetic against a real server with the module.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { root } from "./browser.mjs";
import { trials, visit } from "./page.mjs";
import { startRedis } from "./redis.mjs";

let redis;

before(async () => {
    redis = await startRedis(process.env.MODULE ?? join(root, "target/release/libredis_ratelimit.so"));
});

after(() => redis?.stop());

const SETTINGS = [
    {},
    { shape: "edge", period: 5000 },
    { shape: "abuser", shared: true },
    { shape: "slow" },
    { shape: "rising", rate: 7, limit: 33, period: 30_000, burst: 12, workers: 3, service: 900 },
    { shape: "bursts", rate: 60, limit: 600, period: 1000, burst: 600, workers: 100, service: 10 },
];
// The shedder throws dice: its chance is compared, and the outcome where it is certain.
const agrees = (line, ours, theirs) => {
    if (!line.startsWith("RL.SHED ")) return JSON.stringify(ours) === JSON.stringify(line.startsWith("RL.MULTI ") ? theirs[0] : theirs);
    const [[limited, chance], [server, said]] = [ours, theirs];
    return Math.abs(chance - Number(said)) <= 1e-12 && (![0, 1].includes(chance) || limited === server);
};

for (const settings of SETTINGS) {
    test(`what the page computes is what a server with the module replies, call by call, ${JSON.stringify(settings)}`, () =>
        visit({}, async (tab) => {
            for (const { id, figures } of await trials(tab, settings)) {
                const history = await tab.evaluate((given) => window.ratelimit.history(given), { ...settings, strategy: id });
                const asked = history.filter(([line]) => !line.startsWith("RL.RELEASE "));
                assert.equal(asked.length, figures.all.offered, id);
                assert.equal(asked.filter(([, [limited]]) => limited === 0).length, figures.all.admitted, id);
                await redis.call(["FLUSHALL"]);
                const replies = await redis.call(history.map(([line]) => line));
                const off = history.findIndex(([line, ours], i) => replies[i] instanceof Error || !agrees(line, ours, replies[i]));
                assert.equal(off, -1, `${id}, call ${off}: ${JSON.stringify(history[off])}, but the server says ${replies[off]}`);
            }
        }));
}

test("every command on the page is one that the server takes", () =>
    visit({}, async (tab) => {
        const commands = await tab.$$eval(".command code", (all) => all.map((code) => code.textContent));
        assert.equal(new Set(commands).size, (await trials(tab)).length);
        for (const command of commands) {
            const [, reply] = await redis.call(["FLUSHALL", command]);
            assert.equal([reply].flat(2)[0], 0, `${command}: ${reply}`);
        }
    }));
