// The colours of code, with as much of highlight.js's interface as the book calls. That knows nearly all languages, in 137 kB; the
// pages need sessions of redis-cli, and the strings, comments, numbers and keywords of a few languages.
"use strict";

window.hljs = (() => {
    const CODE = new RegExp(
        [
            String.raw`(?<comment>(?<=^|\s)(?:#|//|--)(?: .*|$))`,
            String.raw`(?<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\`[^\`]*\`)`,
            String.raw`(?<keyword>\b(?:and|as|async|await|catch|class|const|def|do|elif|else|end|except|export|finally|for|from|function|if|import|in|lambda|let|local|new|not|of|or|raise|return|then|throw|try|while|with|yield)\b)`,
            String.raw`(?<number>\b\d[\w.]*|\b(?:None|True|False|null|nil|true|false)\b)`,
        ].join("|"),
        "gm",
    );

    function code(text) {
        let end = 0;
        const parts = [...text.matchAll(CODE)].flatMap(({ 0: found, index, groups }) => {
            const plain = text.slice(end, index);
            end = index + found.length;
            return [["", plain], [Object.keys(groups).find((name) => groups[name] !== undefined), found]];
        });
        return [...parts, ["", text.slice(end)]];
    }

    // A call has its prompt in another colour; what is below it is the reply, with comments.
    function session(line) {
        const [, prompt, command] = line.match(/^(127\.0\.0\.1:6379> |\$ )(.*\n?)$/) ?? [];
        if (prompt) return [["comment", prompt], ["", command]];
        const [, reply, comment] = line.match(/^(.*?)((?: +# .*)?\n?)$/);
        return [[reply.startsWith("(error)") ? "error" : "reply", reply], ["comment", comment]];
    }

    const change = (line) => [[{ "+": "addition", "-": "deletion" }[line[0]] ?? "", line]];
    const byLine = (parts) => (text) => text.split(/(?<=\n)/).flatMap(parts);
    const [sessions, changes] = [byLine(session), byLine(change)];
    const LANGUAGES = { "redis-cli": sessions, replies: sessions, console: sessions, diff: changes };
    for (const name of ["python", "js", "lua", "yaml", "conf", "sh"]) LANGUAGES[name] = code;

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
