// The module's arithmetic: unpacked, and asked by name.
async function engine(bytes) {
    const wasm = (await WebAssembly.instantiate(bytes, {})).instance.exports;
    return async (name, given) => {
        const question = new TextEncoder().encode(JSON.stringify(given));
        const at = wasm.room(question.length);
        new Uint8Array(wasm.memory.buffer, at, question.length).set(question);
        const from = wasm[name]();
        return JSON.parse(new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, from, wasm.told())));
    };
}

async function unpack(text) {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}
