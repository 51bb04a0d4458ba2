// The colours of code, with as much of highlight.js's interface as the book calls. That knows nearly all languages, in 137 kB; the
// pages need sessions of redis-cli, and the strings, comments, numbers and keywords of a few languages.
"use strict";

window.hljs = (() => {
    // By what its comments begin with: "//" divides in Python, and "--" ends the options in a shell.
    const codeWith = (mark) => (text) => code(text, new RegExp(
        [
            String.raw`(?<comment>(?<=^|\s)${mark}(?: .*|$))`,
            String.raw`(?<string>"(?:\\[^]|[^"\\])*"|'(?:\\[^]|[^'\\])*'|\`[^\`]*\`)`,
            String.raw`(?<keyword>(?<![.\w])(?:and|as|async|await|catch|class|const|def|do|elif|else|end|except|export|finally|for|from|function|if|import|in|lambda|let|local|new|not|of|or|raise|return|then|throw|try|while|with|yield)\b)`,
            String.raw`(?<number>\b\d[\w.]*|\b(?:None|True|False|null|nil|true|false)\b)`,
        ].join("|"),
        "gm",
    ));

    function code(text, pattern) {
        let end = 0;
        const parts = [...text.matchAll(pattern)].flatMap(({ 0: found, index, groups }) => {
            const plain = text.slice(end, index);
            end = index + found.length;
            return [["", plain], [Object.keys(groups).find((name) => groups[name] !== undefined), found]];
        });
        return [...parts, ["", text.slice(end)]];
    }

    // A call has its prompt in another colour; what is below it is the reply, with comments.
    function session(line) {
        const [prompt] = line.match(/^(?:127\.0\.0\.1:6379> |\$ )/) ?? [];
        if (prompt) return [["comment", prompt], ["", line.slice(prompt.length)]];
        const at = line.search(/(?<! ) +# /), end = at < 0 ? line.length : at;
        return [[line.startsWith("(error)") ? "error" : "reply", line.slice(0, end)], ["comment", line.slice(end)]];
    }

    const change = (line) => [[{ "+": "addition", "-": "deletion" }[line[0]] ?? "", line]];
    // A call goes on in the next line after a backslash.
    const sessions = (text) => text.split(/(?<=(?<!\\)\n)/).flatMap(session);
    const changes = (text) => text.split(/(?<=\n)/).flatMap(change);
    const LANGUAGES = { __proto__: null, "redis-cli": sessions, replies: sessions, console: sessions, diff: changes, js: codeWith("//"), lua: codeWith("--") };
    for (const name of ["python", "yaml", "conf", "sh"]) LANGUAGES[name] = codeWith("#");

    function highlightBlock(block) {
        const [, language] = block.className.match(/language-([\w-]+)/) ?? [];
        const parts = LANGUAGES[language]?.(block.textContent);
        parts && block.replaceChildren(...parts.map(([name, text]) => {
            if (!name) return text;
            const span = document.createElement("span");
            [span.className, span.textContent] = [`hljs-${name}`, text];
            return span;
        }));
    }

    return { configure() {}, highlightBlock };
})();
