// A real redis-server with the module, on a free port, and one connection to it.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A server; `call(lines)` sends commands, their words between spaces, all at once, and gives their replies in order;
 * an error as an Error. */
export async function startRedis(module) {
    const folder = await mkdtemp(join(tmpdir(), "ratelimit-page-"));
    const port = await freePort();
    const options = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", folder, "--loadmodule", module];
    const server = spawn("redis-server", options.map(String), { stdio: ["ignore", "pipe", "inherit"] });
    const kill = () => server.kill("SIGKILL");
    process.on("exit", kill);
    let log = "";
    server.stdout.on("data", (said) => { log += said; });
    const stop = async () => {
        kill();
        process.off("exit", kill);
        await rm(folder, { recursive: true, force: true });
    };
    const socket = await reach(port, server).catch(async (error) => {
        await stop();
        throw new Error(`${error.message}\n${log}`);
    });
    const reader = new Reader(socket);
    const call = (lines) => {
        const replies = reader.take(lines.length);
        socket.write(lines.map(encode).join(""));
        return replies;
    };
    return { call, stop: () => { socket.destroy(); return stop(); } };
}

function freePort() {
    return new Promise((resolve, reject) => {
        const probe = createServer().once("error", reject);
        probe.listen(0, "127.0.0.1", () => {
            const { port } = probe.address();
            probe.close(() => resolve(port));
        });
    });
}

async function reach(port, server) {
    for (let tries = 0; tries < 100 && server.exitCode === null; tries += 1) {
        const socket = connect(port, "127.0.0.1");
        const connected = await new Promise((resolve) => socket.once("connect", () => resolve(true)).once("error", () => resolve(false)));
        if (connected) return socket;
        await new Promise((soon) => setTimeout(soon, 100));
    }
    throw new Error("redis-server does not answer");
}

function encode(line) {
    const words = line.split(" ");
    return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}

/** Of RESP2; bulk strings are words, without line ends in them. */
class Reader {
    #lines = [];
    #rest = "";
    #wanted = null;

    constructor(socket) {
        socket.setEncoding("utf8");
        socket.on("data", (text) => {
            const lines = (this.#rest + text).split("\r\n");
            this.#rest = lines.pop();
            for (const line of lines) this.#lines.push(line);
            this.#serve();
        });
        socket.on("error", (error) => this.#wanted?.reject(error));
        socket.on("close", () => this.#wanted?.reject(new Error("the server hung up")));
    }

    take(count) {
        return new Promise((resolve, reject) => {
            this.#wanted = { count, resolve, reject, replies: [] };
            this.#serve();
        });
    }

    #serve() {
        const wanted = this.#wanted;
        let at = 0;
        while (wanted && wanted.replies.length < wanted.count) {
            const read = parse(this.#lines, at);
            if (!read) break;
            wanted.replies.push(read.value);
            at = read.next;
        }
        this.#lines.splice(0, at);
        if (wanted && wanted.replies.length === wanted.count) {
            this.#wanted = null;
            wanted.resolve(wanted.replies);
        }
    }
}

/** The reply that begins at a line, and where the next one does; nothing if it is not there as a whole. */
function parse(lines, at) {
    const line = lines[at];
    if (line === undefined) return null;
    const [kind, rest] = [line[0], line.slice(1)];
    if (kind === ":") return { value: Number(rest), next: at + 1 };
    if (kind === "-") return { value: new Error(rest), next: at + 1 };
    if (kind === "$" && rest !== "-1") return lines[at + 1] === undefined ? null : { value: lines[at + 1], next: at + 2 };
    if (kind !== "*") return { value: kind === "+" ? rest : null, next: at + 1 };
    const value = [];
    let next = at + 1;
    while (value.length < Number(rest)) {
        const item = parse(lines, next);
        if (!item) return null;
        value.push(item.value);
        next = item.next;
    }
    return { value, next };
}
